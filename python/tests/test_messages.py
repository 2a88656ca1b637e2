"""Messages: tags, any order, any size, both ways at once."""

import itertools
import random
import time

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from values import ALL, check_equal, stretched, value


def both_ways_first_send(rank):
    """Large enough that nobody can send without the other one receiving."""
    mine, got = torch.full((1_000_000,), float(rank)), torch.empty(1_000_000)
    works = [dist.isend(mine, 1 - rank), dist.irecv(got, 1 - rank)]
    for work in reversed(works):
        work.wait()
    assert got[-1] == 1 - rank


def any_order_of_tags(rank):
    count = 12
    sizes = [0, 1, 1000, 4000, 5000, 200_000]
    orders = [random.Random(seed).sample(range(count), count) for seed in (1, 2)]
    payloads = [value(0, (sizes[tag % len(sizes)],), torch.float32, seed=tag) for tag in range(count)]
    if rank == 0:
        for work in [dist.isend(payloads[tag], 1, tag=tag) for tag in orders[0]]:
            work.wait()
        return
    got = {tag: torch.empty_like(payloads[tag]) for tag in orders[1]}
    works = {tag: dist.irecv(got[tag], 0, tag=tag) for tag in orders[1]}
    for tag in orders[0]:
        works[tag].wait()
        check_equal(got[tag], payloads[tag], f"tag {tag}")


def sent_before_asked_for(rank):
    """Blocking receives in the reverse order of the sends."""
    if rank == 0:
        works = [dist.isend(torch.full((2000 * tag + 1,), float(tag)), 1, tag=tag) for tag in range(5)]
        for work in works:
            work.wait()
    else:
        for tag in reversed(range(5)):
            got = torch.empty(2000 * tag + 1)
            assert dist.recv(got, 0, tag=tag) == 0
            assert torch.all(got == tag)


def same_tag_keeps_its_order(rank):
    if rank == 0:
        for i in range(50):
            dist.send(torch.tensor([i]), 1)
    else:
        got = [torch.empty(1, dtype=torch.int64) for _ in range(50)]
        for work in [dist.irecv(each, 0) for each in got]:
            work.wait()
        assert [each.item() for each in got] == list(range(50))


def types_and_gaps(rank):
    for dtype, gaps in itertools.product(ALL, [False, True]):
        mine = value(rank, (130, 11), dtype)
        got = torch.empty(130, 11, dtype=dtype)
        if gaps:
            mine, got = stretched(mine), stretched(got)
        works = [dist.isend(mine, 1 - rank), dist.irecv(got, 1 - rank)]
        for work in works:
            work.wait()
        check_equal(got, value(1 - rank, (130, 11), dtype), str(dtype))


def batches(rank):
    size = dist.get_world_size()
    following, before = (rank + 1) % size, (rank - 1) % size
    mine, got = torch.full((5000,), float(rank)), torch.empty(5000)
    operations = [dist.P2POp(dist.isend, mine, following), dist.P2POp(dist.irecv, got, before)]
    for work in dist.batch_isend_irecv(operations if rank % 2 else operations[::-1]):
        work.wait()
    assert torch.all(got == before)


def wrong_size(rank):
    if rank == 0:
        dist.send(torch.ones(10), 1)
        dist.send(torch.ones(10), 1)
    else:
        with pytest.raises(dist.DistBackendError, match="40 bytes, but the tensor to receive it has 20"):
            dist.recv(torch.empty(5), 0)
        got = torch.empty(10)
        dist.recv(got, 0)
        assert torch.all(got == 1), "the next one is well"


def sender_leaves_first(rank):
    if rank == 0:
        dist.send(torch.arange(100), 1)
        dist.destroy_process_group()
        return


    time.sleep(0.5)
    got = torch.empty(100, dtype=torch.int64)
    dist.recv(got, 0)
    assert torch.equal(got, torch.arange(100))


@pytest.mark.parametrize(
    "body",
    [both_ways_first_send, any_order_of_tags, sent_before_asked_for, same_tag_keeps_its_order, types_and_gaps, wrong_size, sender_leaves_first],
    ids=lambda body: body.__name__,
)
def test_two_ranks(body):
    run_ranks(2, body)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_batches(ranks):
    run_ranks(ranks, batches)
