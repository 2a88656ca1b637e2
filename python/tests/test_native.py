"""The module by itself, without PyTorch: ranks are forked processes that meet over a pipe."""

import multiprocessing
import operator
import threading
import time
from array import array
from functools import reduce

import pytest

from nccl_falcon import _native

ALL_REDUCE, BROADCAST, SEND, RECEIVE = 0, 1, 8, 9
INT32, FLOAT32 = 2, 7
_fork = multiprocessing.get_context("fork")
_overdue_was_seen = _fork.Event()


def _rank(body, identity, ranks, rank, results):
    try:
        results.put((rank, None, body(identity, ranks, rank)))
    except BaseException as error:
        results.put((rank, repr(error), None))


def run_ranks(ranks, body):
    """body(id, ranks, rank) on each rank; the id is of a communicator that rank 0 has opened."""
    results, identities = _fork.Queue(), _fork.SimpleQueue()
    _overdue_was_seen.clear()

    def first(results):
        identity = _native.unique_id()
        for _ in range(ranks - 1):
            identities.put(identity)
        _rank(body, identity, ranks, 0, results)

    def other(rank, results):
        _rank(body, identities.get(), ranks, rank, results)

    processes = [_fork.Process(target=first, args=(results,))]
    processes += [_fork.Process(target=other, args=(rank, results)) for rank in range(1, ranks)]
    for process in processes:
        process.start()
    told = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(20)
        assert process.exitcode == 0
    assert [error for _, error, _ in told if error] == []
    return [result for _, _, result in sorted(told)]


def address(values):
    return values.buffer_info()[0]


def bitwise(identity, ranks, rank):
    communicator = _native.Communicator.create(identity, ranks, rank, 30)
    for reduction, combine in ((6, operator.and_), (7, operator.or_), (8, operator.xor)):
        values = array("i", [0x1234 * (rank + 1) + i for i in range(1000)])
        communicator.run(ALL_REDUCE, address(values), address(values), len(values), INT32, reduction, -1)
        assert values[999] == reduce(combine, [0x1234 * (other + 1) + 999 for other in range(ranks)])
    communicator.close()


def beside(identity, ranks, rank):
    communicator = _native.Communicator.create(identity, ranks, rank, 30)
    buffers = [array("f", [rank + i] * 5000) for i in range(20)]
    pending = [
        communicator.queue(ALL_REDUCE, address(each), address(each), len(each), FLOAT32, 0, -1) for each in buffers
    ]
    for completion in reversed(pending):
        assert completion.wait(30) and completion.error() is None
    for i, each in enumerate(buffers):
        assert set(each) == {float(sum(other + i for other in range(ranks)))}
    group = [(BROADCAST, address(each), address(each), len(each), FLOAT32, 0, root) for root, each in enumerate(buffers[:ranks])]
    communicator.run_all(group)
    communicator.queue_all(group).wait(30)
    assert not communicator.busy()
    communicator.close()


def factors(identity, ranks, rank):
    communicator = _native.Communicator.create(identity, ranks, rank, 30)
    values, factor = array("f", [1.0] * 10), array("f", [rank + 1.0])
    communicator.run_all([(ALL_REDUCE, address(values), address(values), 10, FLOAT32, 5, -1, factor.tobytes())])
    assert values[0] == sum(range(1, ranks + 1))
    communicator.close()


def tags(identity, ranks, rank):
    channel = _native.Channel(identity, rank == 0, "messages from rank 0 to rank 1")
    sizes = [0, 1, 4000, 5000, 300_000]
    if rank == 0:
        sent = [array("b", [tag] * sizes[tag]) for tag in range(5)]
        pending = [channel.post(tag, address(each), len(each)) for tag, each in enumerate(sent)]
    else:
        got = [array("b", [99] * size) for size in sizes]
        pending = [channel.post(tag, address(got[tag]), len(got[tag])) for tag in reversed(range(5))]
    for completion in pending:
        assert completion.wait(30) and completion.error() is None
    if rank == 1:
        assert all(set(each) <= {tag} for tag, each in enumerate(got))
    channel.close("done")
    assert channel.post(0, 0, 0).error() == "done"


def overdue(identity, ranks, rank):
    communicator = _native.Communicator.create(identity, ranks, rank, 30)
    if rank == 1:
        _overdue_was_seen.wait(50)
        return
    communicator.set_timeout(0.5)
    values = array("f", [0.0])
    completion = communicator.queue(ALL_REDUCE, address(values), address(values), 1, FLOAT32, 0, -1)
    assert completion.wait(20)
    assert "500 ms, its timeout" in completion.error()
    with pytest.raises(_native.CallError, match="its timeout"):
        communicator.run(ALL_REDUCE, address(values), address(values), 1, FLOAT32, 0, -1)
    communicator.close()
    _overdue_was_seen.set()


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("body", [bitwise, beside, factors], ids=lambda body: body.__name__)
def test_collectives(body, ranks):
    run_ranks(ranks, body)


@pytest.mark.parametrize("body", [tags, overdue], ids=lambda body: body.__name__)
def test_two_ranks(body):
    run_ranks(2, body)


def test_a_rank_that_never_comes_is_waited_for_no_longer_than_the_timeout():
    began = time.monotonic()
    with pytest.raises(_native.CallError, match="waited for 300 ms for all 2 ranks"):
        _native.Communicator.create(_native.unique_id(), 2, 0, 0.3)
    assert time.monotonic() - began < 5


def test_wrong_arguments_are_named():
    with pytest.raises(_native.CallError, match="has 3 bytes, not 128"):
        _native.Communicator.create(b"abc", 1, 0, 1)
    with pytest.raises(ValueError, match="0 or more"):
        _native.Communicator.create(_native.unique_id(), 1, 0, -1)
    communicator = _native.Communicator.create(_native.unique_id(), 1, 0, 30)
    with pytest.raises(_native.CallError, match="ncclAllReduce"):
        communicator.run(ALL_REDUCE, 0, 0, 5, FLOAT32, 0, -1)
    values = array("f", [0.0])
    with pytest.raises(_native.CallError, match="no integer"):
        communicator.run(ALL_REDUCE, address(values), address(values), 1, FLOAT32, 6, -1)
    communicator.close()
    with pytest.raises(_native.CallError, match="was destroyed"):
        communicator.run(ALL_REDUCE, address(values), address(values), 1, FLOAT32, 0, -1)


def test_a_forked_child_keeps_its_timeouts():
    parents = _native.Communicator.create(_native.unique_id(), 1, 0, 30)  # has the watchdog's thread
    run_ranks(2, overdue)
    parents.close()


def from_threads(identity, ranks, rank):
    """One that runs and one that queues, on the same communicator; every other time it is closed below them."""
    del identity, ranks, rank
    for number in range(60):
        communicator = _native.Communicator.create(_native.unique_id(), 1, 0, 5)
        errors, begun = [], threading.Barrier(3)

        def call(queued):
            values = array("f", [1.0] * 64)
            operation = (ALL_REDUCE, address(values), address(values), 64, FLOAT32, 0, -1)
            pending = []
            begun.wait()
            try:
                for _ in range(500):
                    if queued:
                        pending.append(communicator.queue(*operation))
                    else:
                        communicator.run(*operation)
            except _native.CallError as error:
                errors.append(str(error))
            for each in pending:
                assert each.wait(10)

        callers = [threading.Thread(target=call, args=(queued,)) for queued in (False, True)]
        for caller in callers:
            caller.start()
        begun.wait()
        if number % 2 == 0:
            time.sleep(0.001)
            communicator.close()
        for caller in callers:
            caller.join()
        communicator.close()
        assert all("was destroyed" in error for error in errors), errors


def test_threads_may_call_at_once_and_close():
    run_ranks(1, from_threads)
