"""Every collective against plain computing: types, shapes, numbers of ranks, asynchronous or not, memory with gaps."""

import functools
import itertools
import operator

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from values import ALL, FLOATS, INTEGERS, SHAPES, check_equal, plain, stretched, value

RANKS = [1, 2, 3, 4]
WAYS = list(itertools.product([False, True], [False, True]))  # asynchronous, with gaps


def finish(work, asynchronous):
    assert (work is not None) == asynchronous
    if asynchronous:
        assert work.wait()


def laid(tensor, gaps):
    return stretched(tensor) if gaps else tensor


OPS = {
    dist.ReduceOp.SUM: operator.add,
    dist.ReduceOp.PRODUCT: operator.mul,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}


def reduced(values, op, dtype):
    if op == dist.ReduceOp.AVG:
        total = functools.reduce(operator.add, [each.to(torch.float64) for each in values])
        return (total / len(values)).to(dtype)
    if dtype == torch.bool:
        bits = {dist.ReduceOp.SUM: torch.logical_or, dist.ReduceOp.PRODUCT: torch.logical_and}.get(op, OPS[op])
        return functools.reduce(bits, values)
    return functools.reduce(OPS[op], [plain(each) for each in values]).to(dtype)


def cases_of_reductions():
    floats = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.AVG]
    bits = [dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR]
    for dtype in FLOATS:
        yield from ((dtype, op) for op in floats)
    for dtype in INTEGERS:
        yield from ((dtype, op) for op in [*floats[:4], *bits])
    yield from ((torch.bool, op) for op in [*floats[:4], *bits[:2]])
    yield (torch.complex64, dist.ReduceOp.SUM)
    yield (torch.float8_e4m3fn, dist.ReduceOp.SUM)
    yield (torch.float8_e5m2, dist.ReduceOp.MAX)


def reductions(rank):
    size = dist.get_world_size()
    for (dtype, op), (asynchronous, gaps) in itertools.product(cases_of_reductions(), WAYS):
        for shape in SHAPES if dtype is torch.float32 else [(3, 5), (0,), (4099,)]:
            what = f"{dtype} {op} {shape} async={asynchronous} gaps={gaps}"
            values = [value(other, shape, dtype) for other in range(size)]
            wanted = reduced(values, op, dtype)
            mine = laid(values[rank].clone(), gaps)
            finish(dist.all_reduce(mine, op, async_op=asynchronous), asynchronous)
            check_equal(mine, wanted, f"all_reduce {what}")
            for root in {0, size - 1}:
                mine = laid(values[rank].clone(), gaps)
                finish(dist.reduce(mine, root, op, async_op=asynchronous), asynchronous)
                if rank == root:
                    check_equal(mine, wanted, f"reduce {what} root={root}")
            if dtype.is_complex:
                continue  # torch itself refuses it
            blocks = [[value(other, shape, dtype, seed=block) for block in range(size)] for other in range(size)]
            wanted = reduced([blocks[other][rank] for other in range(size)], op, dtype)
            output = laid(torch.empty(shape, dtype=dtype), gaps)
            finish(
                dist.reduce_scatter(output, [laid(each, gaps) for each in blocks[rank]], op, async_op=asynchronous),
                asynchronous,
            )
            check_equal(output, wanted, f"reduce_scatter {what}")
            output = laid(torch.empty(shape, dtype=dtype), gaps)
            stacked = laid(torch.stack(blocks[rank]), gaps)
            finish(dist.reduce_scatter_tensor(output, stacked, op, async_op=asynchronous), asynchronous)
            check_equal(output, wanted, f"reduce_scatter_tensor {what}")


def moves(rank):
    size = dist.get_world_size()
    for dtype, (asynchronous, gaps) in itertools.product(ALL, WAYS):
        for shape in SHAPES if dtype is torch.float32 else [(3, 5), (0,), (4099,)]:
            what = f"{dtype} {shape} async={asynchronous} gaps={gaps}"
            values = [value(other, shape, dtype) for other in range(size)]
            empty = functools.partial(torch.empty, shape, dtype=dtype)
            for root in {0, size - 1}:
                mine = laid(values[rank].clone() if rank == root else empty(), gaps)
                finish(dist.broadcast(mine, root, async_op=asynchronous), asynchronous)
                check_equal(mine, values[root], f"broadcast {what} root={root}")
            mine = laid(values[rank], gaps)
            outputs = [laid(empty(), gaps) for _ in range(size)]
            finish(dist.all_gather(outputs, mine, async_op=asynchronous), asynchronous)
            for other in range(size):
                check_equal(outputs[other], values[other], f"all_gather {what}")
            flat = torch.empty(size, *shape, dtype=dtype)
            finish(dist.all_gather(list(flat.unbind()), mine, async_op=asynchronous), asynchronous)
            check_equal(flat, torch.stack(values), f"all_gather into one {what}")
            flat = laid(torch.empty(size, *shape, dtype=dtype), gaps)
            finish(dist.all_gather_into_tensor(flat, mine, async_op=asynchronous), asynchronous)
            check_equal(flat, torch.stack(values), f"all_gather_into_tensor {what}")
            for root in {0, size - 1}:
                outputs = [laid(empty(), gaps) for _ in range(size)] if rank == root else None
                finish(dist.gather(mine, outputs, root, async_op=asynchronous), asynchronous)
                for other in range(size) if rank == root else ():
                    check_equal(outputs[other], values[other], f"gather {what} root={root}")
                output = laid(empty(), gaps)
                inputs = [laid(each, gaps) for each in values] if rank == root else None
                finish(dist.scatter(output, inputs, root, async_op=asynchronous), asynchronous)
                check_equal(output, values[rank], f"scatter {what} root={root}")
            blocks = [[value(other, shape, dtype, seed=block) for block in range(size)] for other in range(size)]
            wanted = [blocks[other][rank] for other in range(size)]
            outputs = [laid(empty(), gaps) for _ in range(size)]
            finish(dist.all_to_all(outputs, [laid(each, gaps) for each in blocks[rank]], async_op=asynchronous), asynchronous)
            for got, each in zip(outputs, wanted):
                check_equal(got, each, f"all_to_all {what}")
            if not shape:
                continue
            flat = laid(torch.empty(size, *shape, dtype=dtype), gaps)
            finish(dist.all_to_all_single(flat, laid(torch.stack(blocks[rank]), gaps), async_op=asynchronous), asynchronous)
            check_equal(flat, torch.stack(wanted), f"all_to_all_single {what}")


def uneven(rank):
    size = dist.get_world_size()
    for dtype, asynchronous in itertools.product([torch.float32, torch.int16, torch.bool], [False, True]):
        lengths = [[(3 * source + 2 * target + 1) % 5 for target in range(size)] for source in range(size)]
        inputs = [[value(s, (lengths[s][t], 3), dtype, seed=t) for t in range(size)] for s in range(size)]
        wanted = [inputs[source][rank] for source in range(size)]
        output = torch.empty(sum(map(len, wanted)), 3, dtype=dtype)
        splits = [len(each) for each in wanted]
        finish(
            dist.all_to_all_single(output, torch.cat(inputs[rank]), splits, lengths[rank], async_op=asynchronous),
            asynchronous,
        )
        check_equal(output, torch.cat(wanted), "all_to_all_single")
        outputs = [torch.empty_like(each) for each in wanted]
        finish(dist.all_to_all(outputs, inputs[rank], async_op=asynchronous), asynchronous)
        for got, each in zip(outputs, wanted):
            check_equal(got, each, "all_to_all")
        parts = [value(other, (other + 2, 3), dtype) for other in range(size)]
        outputs = [torch.empty_like(each) for each in parts]
        finish(dist.all_gather(outputs, parts[rank], async_op=asynchronous), asynchronous)
        for got, each in zip(outputs, parts):
            check_equal(got, each, "all_gather")
        blocks = [[value(other, (block + 2, 3), dtype, seed=block) for block in range(size)] for other in range(size)]
        output = torch.empty(rank + 2, 3, dtype=dtype)
        finish(dist.reduce_scatter(output, blocks[rank], async_op=asynchronous), asynchronous)
        check_equal(output, reduced([each[rank] for each in blocks], dist.ReduceOp.SUM, dtype), "reduce_scatter")


def scaled_sums(rank):
    size = dist.get_world_size()
    for dtype in FLOATS:
        mine = value(rank, (33,), dtype)
        op = dist._make_nccl_premul_sum(2.0)
        dist.all_reduce(mine, op)
        check_equal(mine, reduced([2 * value(other, (33,), dtype) for other in range(size)], dist.ReduceOp.SUM, dtype), str(dtype))


def coalesced(rank):
    size = dist.get_world_size()
    shapes = [(3,), (5, 7), (1000,)]
    sums = [sum(value(other, shape, torch.float32) for other in range(size)) for shape in shapes]
    for asynchronous in (False, True):
        mine = [value(rank, shape, torch.float32) for shape in shapes]
        with dist._coalescing_manager(async_ops=asynchronous) as manager:
            for each in mine:
                dist.all_reduce(each)
        if asynchronous:
            manager.wait()
        for got, wanted in zip(mine, sums):
            check_equal(got, wanted, "all_reduce")
        outputs = [torch.empty(size * each.numel()) for each in mine]
        with dist._coalescing_manager(async_ops=asynchronous) as manager:
            for output, each in zip(outputs, mine):
                dist.all_gather_into_tensor(output, each.view(-1))
        if asynchronous:
            manager.wait()
        for output, wanted in zip(outputs, sums):
            check_equal(output, wanted.view(-1).repeat(size), "all_gather_into_tensor")
        inputs = [value(rank, (size * 5,), torch.float32, seed=i) for i in range(3)]
        outputs = [torch.empty(5) for _ in inputs]
        with dist._coalescing_manager(async_ops=asynchronous) as manager:
            for output, each in zip(outputs, inputs):
                dist.reduce_scatter_tensor(output, each)
        if asynchronous:
            manager.wait()
        for i, output in enumerate(outputs):
            total = sum(value(other, (size * 5,), torch.float32, seed=i) for other in range(size))
            check_equal(output, total.view(size, 5)[rank], "reduce_scatter_tensor")


def objects(rank):
    size = dist.get_world_size()
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": other, "text": "x" * other} for other in range(size)]
    told = [("from", 0)] if rank == 0 else [None]
    dist.broadcast_object_list(told, 0)
    assert told == [("from", 0)]
    mine = [None]
    dist.scatter_object_list(mine, list(range(size)) if rank == 0 else None, 0)
    assert mine == [rank]


def groups(rank):
    size = dist.get_world_size()
    even = dist.new_group([other for other in range(size) if other % 2 == 0])
    if rank % 2 == 0:
        mine = torch.tensor([rank])
        dist.all_reduce(mine, group=even)
        assert mine.item() == sum(range(0, size, 2))
    dist.barrier()
    alone = dist.new_subgroups(1)[0]
    mine = torch.tensor([rank])
    dist.all_reduce(mine, group=alone)
    assert mine.item() == rank
    dist.monitored_barrier()
    half = dist.split_group(split_ranks=[list(range(0, size, 2)), list(range(1, size, 2))][: min(size, 2)])
    mine = torch.tensor([rank])
    dist.all_reduce(mine, group=half)
    assert mine.item() == sum(range(rank % 2, size, 2))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("body", [reductions, moves, uneven, scaled_sums, coalesced, objects, groups], ids=lambda body: body.__name__)
def test_collectives(body, ranks):
    run_ranks(ranks, body, timeout=120)


def futures(rank):
    tensors = [torch.full((1000,), float(i + rank)) for i in range(200)]
    works = [dist.all_reduce(each, async_op=True) for each in tensors]
    seen = []
    chained = [work.get_future().then(lambda future: seen.append(future.value()) or future.value()) for work in works]
    for i, future in enumerate(chained):
        value_of = future.wait()
        got = value_of[0] if isinstance(value_of, (list, tuple)) else value_of
        assert torch.equal(got, torch.full((1000,), float(2 * i + 1)))
        assert works[i].is_completed()
    assert len(seen) == len(works)


def test_futures_are_set_without_anybody_waiting():
    run_ranks(2, futures)


def values_of_futures(rank):
    """A list, as NCCL's: hooks of DDP and FSDP take its first tensor."""
    for make in (
        lambda: dist.all_reduce(torch.ones(4), async_op=True),
        lambda: dist.all_gather_into_tensor(torch.empty(8), torch.ones(4), async_op=True),
        lambda: dist.reduce_scatter_tensor(torch.empty(2), torch.ones(4), async_op=True),
        lambda: dist.all_to_all_single(torch.empty(4), torch.ones(4), async_op=True),
        lambda: dist.all_to_all_single(torch.empty(4), torch.ones(4), [2, 2], [2, 2], async_op=True),
    ):
        work = make()
        told = work.get_future().wait()
        assert isinstance(told, list) and len(told) == 1 and isinstance(told[0], torch.Tensor), told
        assert work.result()[0] is told[0] or torch.equal(work.result()[0], told[0])


def test_futures_hold_lists():
    run_ranks(2, values_of_futures)


def wants_gradients(rank):
    """Leaves with gaps, whose results are copied back, on whichever thread."""
    for way in ("blocking", "wait", "future"):
        leaf = stretched(torch.full((5,), rank + 1.0)).requires_grad_()
        work = dist.all_reduce(leaf, async_op=way != "blocking")
        if way == "wait":
            work.wait()
        if way == "future":
            assert work.get_future().wait() is not None
        assert leaf.tolist() == [3.0] * 5, way
    parts = [torch.zeros(other + 1).requires_grad_() for other in range(2)]
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    assert parts[1].tolist() == [1.0, 1.0]


def test_tensors_that_want_gradients():
    run_ranks(2, wants_gradients)


def gathers_coalesced(rank):
    outputs = [stretched(torch.zeros(4)), torch.zeros(2, 3)]
    inputs = [torch.full((2,), float(rank)), torch.full((3,), float(rank))]
    with dist._coalescing_manager():
        for output, source in zip(outputs, inputs):
            dist.all_gather_into_tensor(output, source)
    assert outputs[0].tolist() == [0, 0, 1, 1] and outputs[1].tolist() == [[0, 0, 0], [1, 1, 1]]
    room = torch.zeros(16)
    backend = dist.distributed_c10d._get_default_group()
    with pytest.raises(ValueError, match="2 times 4 elements to gather, but room for 7"):
        backend.all_gather_single_coalesced([room[:7]], [torch.ones(4)]).wait()
    assert torch.all(room == 0)


def test_coalesced_gathers_stay_in_their_outputs():
    run_ranks(2, gathers_coalesced)


def fails_in_a_region(rank):
    group = dist.distributed_c10d._get_default_group()
    cpu = torch.device("cpu")
    group._start_coalescing(cpu)
    with pytest.raises(ValueError, match="non-integral"):
        dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND)
    mine = torch.ones(3)
    dist.all_reduce(mine)
    assert mine[0] == 2, "it was not swallowed"
    group._start_coalescing(cpu)  # and nobody ends it
    with dist._coalescing_manager(group, cpu):
        mine = torch.ones(3)
        dist.broadcast(mine, 0)
    group._start_coalescing(cpu)
    group.abort()


def test_a_failed_region_swallows_nothing():
    run_ranks(2, fails_in_a_region)


def splits_some(rank):
    pair = dist.split_group(split_ranks=[[2, 0]])
    assert (pair is dist.GroupMember.NON_GROUP_MEMBER) == (rank == 1)
    if rank != 1:
        mine = torch.tensor([rank])
        dist.all_reduce(mine, group=pair)
        assert mine.item() == 2 and dist.get_rank(pair) == (0 if rank == 2 else 1)
    again = dist.split_group(None, [[0, 1], [2]])
    assert dist.get_world_size(again) == (1 if rank == 2 else 2)


def test_a_rank_may_have_no_part_in_a_split():
    run_ranks(3, splits_some)


def refusals(rank):
    for tensor, op, words in [
        (torch.ones(3), dist.ReduceOp.BAND, "non-integral"),
        (torch.ones(3, dtype=torch.bool), dist.ReduceOp.AVG, "torch.bool"),
        (torch.ones(3).to_sparse(), dist.ReduceOp.SUM, "dense"),
    ]:
        with pytest.raises((ValueError, RuntimeError, NotImplementedError), match=words):
            dist.all_reduce(tensor, op)
    with pytest.raises((ValueError, RuntimeError), match="room for"):
        dist.all_gather_into_tensor(torch.empty(5), torch.empty(3))
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match="name the rank"):
        dist.recv(torch.empty(3))
    mine = torch.ones(3)
    dist.all_reduce(mine)
    assert mine[0] == dist.get_world_size(), "the group is as well as before"


def test_what_cannot_be_is_refused_by_name():
    run_ranks(2, refusals)
