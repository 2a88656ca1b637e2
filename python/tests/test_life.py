"""How it begins and ends: dead peers, timeouts, aborts, processes that just exit."""

import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, tell, wait_to_be_told

HERE = Path(__file__).parent


@pytest.mark.parametrize("way", ["destroyed", "not destroyed", "futures", "left open"])
def test_a_process_exits_cleanly_many_times(way):
    """Real ends of the interpreter, with whatever was going on."""
    pairs = int(os.environ.get("FALCON_EXITS", "5"))
    done = subprocess.run([sys.executable, "-W", "ignore", "-B", HERE / "exits.py", way, str(pairs)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == str(2 * pairs), done.stdout + done.stderr
    assert done.stderr == "", done.stderr


def dies(rank, asynchronous):
    dist.barrier()
    if rank == 1:
        os._exit(0)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="falcon") as caught:
        work = dist.all_reduce(torch.ones(100_000), async_op=asynchronous)
        if asynchronous:
            work.wait()
    assert time.monotonic() - began < 5
    assert "rank 1" in str(caught.value), caught.value
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_dead_rank_is_named_within_seconds(asynchronous):
    run_ranks(2, dies, asynchronous, lost={1})


def dies_in_training(rank, hook):
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    if hook == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        net.register_comm_hook(None, fp16_compress_hook)
    if hook == "shares":
        from nccl_falcon.torch import GradientShare, share_gradients

        net.register_comm_hook(GradientShare(1 / 2), share_gradients)
    if rank == 1:
        os._exit(0)
    with pytest.raises(RuntimeError, match="falcon: rank 1 .* died"):
        net(torch.ones(1, 8)).sum().backward()


@pytest.mark.parametrize("hook", [None, "fp16", "shares"])
def test_a_dead_rank_is_named_by_a_backward_pass(hook):
    run_ranks(2, dies_in_training, hook, lost={1})


def dies_before_a_message(rank):
    if rank == 1:
        dist.send(torch.ones(1), 0)
        os._exit(0)
    got = torch.empty(1)
    dist.recv(got, 1)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="messages from rank 1 to rank 0"):
        dist.recv(got, 1)
    assert time.monotonic() - began < 5


def test_a_dead_sender_is_named_within_seconds():
    run_ranks(2, dies_before_a_message, lost={1})


def asked_for(how):
    """A work that receives from rank 1; of a batch, one for two messages."""
    if how == "alone":
        return dist.irecv(torch.empty(1), 1)
    (work,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, torch.empty(1), 1) for _ in range(2)])
    return work


def dies_before_any_message(rank, how):
    if rank == 1:
        os._exit(0)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="falcon"):
        asked_for(how).wait()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("how", ["alone", "in a batch"])
def test_a_dead_rank_that_never_sent_is_known_within_seconds(how):
    run_ranks(2, dies_before_any_message, how, lost={1})


def sends_nothing(rank, how, limit):
    if rank == 1:
        wait_to_be_told("seen")
        return
    if limit is None:  # the group's
        dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=1))
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="within 1 s, its timeout"):
        work = asked_for(how)
        work.wait() if limit is None else work.wait(timedelta(seconds=limit))
    assert time.monotonic() - began < 10, "the group's usual timeout is 30 s"
    tell("seen")


@pytest.mark.parametrize("limit", [1, None])
@pytest.mark.parametrize("how", ["alone", "in a batch"])
def test_a_message_is_waited_for_no_longer_than_said(how, limit):
    run_ranks(2, sends_nothing, how, limit)


def sends_on_other_ways(rank):
    if rank == 1:
        dist.barrier()
        dist.send(torch.ones(1), 2)
        return
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="within 1 s, its timeout"):
            dist.irecv(torch.empty(1), 1).wait(timedelta(seconds=1))
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="messages from rank 1 to rank 0: .* within 1 s, its timeout"):
            dist.recv(torch.empty(1), 1)
        assert time.monotonic() - began < 10, "at once: it could wait for 30 s"
    dist.barrier()
    got = torch.zeros(1)
    if rank == 0:
        dist.recv(got, 2)
    else:
        dist.send(torch.ones(1), 0)
        dist.recv(got, 1)
    assert got.item() == 1


def test_a_message_that_does_not_come_closes_its_own_way_only():
    run_ranks(3, sends_on_other_ways)


def destroys_too_early(rank):
    """What is queued ends before the group does, and its results are there."""
    mine = [torch.full((100_000,), rank + 1.0) for _ in range(3)]
    if rank == 1:
        time.sleep(1)
    for each in mine:
        dist.all_reduce(each, async_op=True)
    dist.destroy_process_group()
    assert all(torch.all(each == 3) for each in mine)


def test_a_group_is_destroyed_once_its_operations_have_ended():
    run_ranks(2, destroys_too_early)


def destroys_what_does_not_end(rank):
    if rank == 1:
        wait_to_be_told("seen")
        return
    store = dist.distributed_c10d._get_default_store()
    dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=1))
    mine = torch.ones(1000)
    began = time.monotonic()
    work = dist.all_reduce(mine, async_op=True)
    dist.destroy_process_group()
    assert 0.9 < time.monotonic() - began < 10, "it could wait for 30 s"
    store.set("seen", "told")
    assert work.is_completed() and not work.is_success()
    assert Path(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + "0").exists(), "it has failed, and the newest calls tell how"


def test_destroying_a_group_takes_no_longer_than_its_timeout(tmp_path):
    run_ranks(2, destroys_what_does_not_end, environment={"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "rank")})


def fails_and_tells(rank):
    well = dist.all_reduce(torch.ones(2), async_op=True)
    well.wait()
    assert well.is_completed() and well.is_success() and well.exception() is None
    if rank == 1:
        wait_to_be_told("seen")
        return
    dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=1))
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert not work.is_completed() and not work.is_success()
    end = time.monotonic() + 20
    while not work.is_completed():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not work.is_success()
    assert "1000 ms, its timeout" in str(work.exception())
    with pytest.raises(dist.DistBackendError, match="1000 ms, its timeout"):
        work.result()
    tell("seen")


def test_a_failed_work_does_not_look_well():
    run_ranks(2, fails_and_tells)


def test_works_of_others_answer_themselves():
    class Enqueued(dist.Work):
        """As NCCL's: its future is done as soon as the operation is in a stream."""

        def get_future(self):
            future = torch.futures.Future()
            future.set_result([])
            return future

    assert not Enqueued().is_completed()


def test_what_cannot_be_finished_fails_its_future():
    from nccl_falcon._work import Underway

    class Ended:
        ended = wait = lambda self, *_: True
        error = lambda self: None

    def finish():
        raise ValueError("no room for the results")

    work = Underway([], [Ended()], finish=finish)
    future = work.get_future()
    assert future.done() and work.is_completed() and not work.is_success()
    with pytest.raises(RuntimeError, match="no room"):
        future.wait()
    with pytest.raises(ValueError, match="no room"):
        work.wait()


def many_at_once(rank):
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    for _ in range(200):
        dist.all_reduce(torch.ones(1), async_op=True).wait()
    assert not backend._underway, "what was waited for is not kept"
    asked = []
    theirs = type(backend)._sweep
    type(backend)._sweep = lambda self: asked.append(len(self._underway)) or theirs(self)
    works = [dist.irecv(torch.zeros(1), 1 - rank, tag=tag) for tag in range(1000)]
    assert sum(asked) < 10_000, asked
    works += [dist.isend(torch.ones(1), 1 - rank, tag=tag) for tag in range(1000)]
    for work in works:
        work.wait()


def test_many_operations_are_kept_cheaply():
    run_ranks(2, many_at_once)


def does_not_come(rank, asynchronous):
    if rank == 1:
        wait_to_be_told("seen")
        return
    dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=1))
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="1000 ms, its timeout"):
        work = dist.all_reduce(torch.ones(3), async_op=asynchronous)
        if asynchronous:
            work.wait()
    assert 0.9 < time.monotonic() - began < 10, "it could wait for 30 s"
    tell("seen")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_rank_that_does_not_come_ends_the_call_after_the_timeout(asynchronous):
    run_ranks(2, does_not_come, asynchronous)


def misses_a_barrier(rank):
    if rank == 1:
        for other in (0, 2):
            wait_to_be_told(f"seen by {other}")
        return
    words = r"Rank 1 failed to pass monitoredBarrier in 500 ms" if rank == 0 else "failed to pass monitoredBarrier"
    with pytest.raises(RuntimeError, match=words):
        dist.monitored_barrier(timeout=timedelta(seconds=0.5) if rank == 0 else timedelta(seconds=5))
    tell(f"seen by {rank}")


def test_a_monitored_barrier_names_who_is_missing():
    run_ranks(3, misses_a_barrier)


def aborted(rank):
    if rank == 1:
        wait_to_be_told("seen")
        return
    group = dist.distributed_c10d._get_default_group()
    threading.Timer(0.5, group.abort).start()
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="aborted"):
        dist.all_reduce(torch.ones(3))
    assert time.monotonic() - began < 10, "it could wait for 30 s"
    tell("seen")


def test_abort_ends_what_waits():
    run_ranks(2, aborted)


def aborts_with_everything(rank):
    """PyTorch's way, inside of a region of calls that it coalesces."""
    dist.irecv(torch.empty(1), 1 - rank)
    if rank == 0:
        dist.all_reduce(torch.ones(3), async_op=True)
    dist.distributed_c10d._abort_process_group()
    assert not dist.is_initialized()


def test_pytorch_aborts_a_group():
    run_ranks(2, aborts_with_everything)


def shrinks(rank, how):
    """Rank 1 goes; what is left is a process group of its own, and may shrink again."""
    dist.all_reduce(torch.ones(4))
    flags = dist.distributed_c10d.SHRINK_DEFAULT
    if how == "of a dead rank":
        if rank == 1:
            os._exit(0)
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(torch.ones(1))
        flags = dist.distributed_c10d.SHRINK_ABORT
    if rank == 1:
        return
    group = dist.new_group([0, 2, 3], use_local_synchronization=True) if how == "of a group" else None
    if how == "of a group" and rank == 2:
        return
    group = dist.shrink_group([1], group, flags)
    assert dist.get_world_size(group) == (2 if how == "of a group" else 3)
    number = torch.tensor([10.0 ** rank])
    dist.all_reduce(number, group=group)
    assert number.item() == (1001 if how == "of a group" else 1101)
    if how == "of a group":
        return
    me = dist.get_rank()
    assert me == {0: 0, 2: 1, 3: 2}[rank]
    neighbour = torch.zeros(1)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, torch.tensor([float(me)]), (me + 1) % 3), dist.P2POp(dist.irecv, neighbour, (me + 2) % 3)]
    )
    for work in works:
        work.wait()
    assert neighbour.item() == (me + 2) % 3
    if me == 2:
        return
    dist.shrink_group([2])
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == 2


@pytest.mark.parametrize("how", ["of all ranks", "of a dead rank", "of a group"])
def test_a_group_shrinks(how):
    run_ranks(4, shrinks, how, lost={1} if how == "of a dead rank" else ())


def shrinks_too_early(rank):
    pair = dist.new_group([0, 1])
    if rank == 0:
        work = dist.all_reduce(torch.ones(1), group=pair, async_op=True)
        with pytest.raises(RuntimeError, match="under way; wait for them, or shrink it with SHRINK_ABORT"):
            dist.shrink_group([1], pair)
    dist.barrier()
    if rank == 1:
        dist.all_reduce(torch.ones(1), group=pair)
    else:
        work.wait()


def test_a_group_does_not_shrink_below_an_operation():
    run_ranks(2, shrinks_too_early)


def mixed(rank):
    assert dist.get_backend() == "cpu:falcon"
    mine = torch.ones(3)
    dist.all_reduce(mine)
    assert mine[0] == 2


def test_cpu_falcon_beside_another_device():
    run_ranks(2, mixed, backend="cpu:falcon")


def starts_on_a_kept_store(rank, path):
    """What agents of torchrun give their ranks: each counts its own failures, and the store is the last start's."""
    os.environ["TORCHELASTIC_RESTART_COUNT"] = str(rank)
    for _ in range(3):
        dist.init_process_group("falcon", store=dist.FileStore(path, 2), rank=rank, world_size=2, timeout=timedelta(seconds=10))
        mine = torch.ones(1)
        dist.all_reduce(mine)
        assert mine[0] == 2
        dist.monitored_barrier()
        dist.destroy_process_group()


def test_ranks_of_agents_that_count_differently_meet(tmp_path):
    run_ranks(2, starts_on_a_kept_store, str(tmp_path / "store"), backend=None)


def test_it_works_without_pytorch():
    script = """
import sys
sys.modules["torch"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
import nccl_falcon
assert nccl_falcon.nccl_version() > 23000 and nccl_falcon.api_version() >= 8
with nccl_falcon.range("forward"):
    pass
nccl_falcon.iteration_work(5)
print(nccl_falcon.library_path())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = Path(done.stdout.strip())
    assert library.name == "libnccl.so.2"
    # Tests of processors have their module where it could be built.
    if any(Path("/usr/include").rglob("cblas.h")):
        assert (library.parent / "libnccl_falcon_compute.so").exists()


def test_pytorch_keeps_its_own_library():
    """Both are in the process, and each caller has its own."""
    script = """
import nccl_falcon, torch, re
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libnccl" in line}
nccl_falcon.nccl_version()
if torch.cuda.nccl.is_available([]) if hasattr(torch.cuda, "nccl") else False:
    print(torch.cuda.nccl.version())
print(len(loaded))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_old_pytorch_is_refused_by_its_version():
    from nccl_falcon import _register

    class Old:
        __version__ = "2.11.0+cpu"

    assert _register._is_old(Old)
    with pytest.raises(RuntimeError, match="needs PyTorch 2.15 or later.*2.11.0"):
        _register._refuse_version(Old)()
