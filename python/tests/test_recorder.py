"""The newest calls of each rank, in the format of PyTorch's flight recorder."""

import json
import os
import pickle
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, tell, wait_to_be_told


def traces(folder):
    return {int(path.name.removeprefix("rank")): pickle.loads(path.read_bytes()) for path in Path(folder).glob("rank*")}


def calls_what_others_do_not(rank, asynchronous):
    dist.all_reduce(torch.ones(2, 3))
    pair = torch.zeros(2, 5)
    dist.all_gather_into_tensor(pair.view(-1), torch.ones(5), async_op=True).wait()
    if rank == 0:
        dist.send(torch.ones(4), 1)
    else:
        dist.recv(torch.ones(4), 0)
    dist.barrier()
    if rank == 1:
        wait_to_be_told("seen")
        return
    dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=2))
    with pytest.raises(dist.DistBackendError):
        work = dist.broadcast(torch.ones(7), 0, async_op=asynchronous)
        dist.all_reduce(torch.ones(8))
        if asynchronous:
            work.wait()
    tell("seen")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_timeout_leaves_a_trace(tmp_path, asynchronous):
    settings = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "rank")}
    run_ranks(2, calls_what_others_do_not, asynchronous, environment=settings)
    trace = traces(tmp_path)[0]
    assert trace["version"] == "2.10"
    seen = [(e["profiling_name"], e["input_sizes"], e["output_sizes"], e["input_dtypes"], e["state"]) for e in trace["entries"]]
    assert seen[:4] == [
        ("falcon:all_reduce", [[6]], [[6]], ["Float"], "completed"),
        ("falcon:_all_gather_base", [[5]], [[10]], ["Float"], "completed"),
        ("falcon:send 0->1", [[4]], [], ["Float"], "completed"),
        ("falcon:barrier", [[1]], [[1]], ["Byte"], "completed"),
    ]
    assert seen[-1][0] in ("falcon:broadcast", "falcon:all_reduce") and seen[-1][-1] == "started", seen
    assert [e["collective_seq_id"] for e in trace["entries"][:4]] == [1, 2, 2, 3]
    assert [e["p2p_seq_id"] for e in trace["entries"][:4]] == [0, 0, 1, 1]
    assert trace["pg_config"]["0"]["ranks"] == "[0, 1]" and trace["pg_config"]["0"]["desc"] == "default_pg"
    here = [frame for frame in trace["entries"][0]["frames"] if frame["filename"] == __file__]
    assert here[0]["name"] == "calls_what_others_do_not"
    assert "dist.all_reduce(torch.ones(2, 3))" in Path(__file__).read_text().splitlines()[here[0]["line"] - 1]


def goes_its_own_way(rank):
    for _ in range(3):
        dist.all_reduce(torch.ones(4))
    dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=3))
    with pytest.raises(dist.DistBackendError):
        if rank == 1:
            dist.all_reduce(torch.ones(16))
        else:
            dist.broadcast(torch.ones(4), 0)
            dist.all_reduce(torch.ones(4))
    time.sleep(1)


def test_pytorchs_analyzer_finds_the_one_that_differs(tmp_path):
    run_ranks(3, goes_its_own_way, environment={"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "rank")})
    assert sorted(traces(tmp_path)) == [0, 1, 2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "torch.distributed.flight_recorder.fr_trace", tmp_path, "-p", "rank"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": ""},
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "Collective sequence number: 4 has errors" in told, told
    assert "COLLECTIVE_TYPE_MISMATCH" in told and "'all_reduce'" in told and "'broadcast'" in told, told


def fails_quietly(rank, path):
    if rank == 1:
        os._exit(0)
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(4))
    Path(path).write_text(json.dumps(len(list(Path(path).parent.glob("rank*")))))


@pytest.mark.parametrize("setting", [{"TORCH_FR_BUFFER_SIZE": "0"}, {"TORCH_FR_DUMP_ON_TIMEOUT": "0"}])
def test_no_trace_where_none_is_wanted(tmp_path, setting):
    settings = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "rank"), **setting}
    run_ranks(2, fails_quietly, str(tmp_path / "count"), environment=settings, lost={1})
    assert json.loads((tmp_path / "count").read_text()) == 0


def ends_well(rank):
    dist.all_reduce(torch.ones(4))
    dist.all_reduce(torch.ones(4), async_op=True)


def test_no_trace_of_a_group_that_ends_well(tmp_path):
    run_ranks(2, ends_well, environment={"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "rank")})
    assert traces(tmp_path) == {}


def remembers(rank):
    from nccl_falcon import _recorder

    for number in range(10):
        dist.all_reduce(torch.ones(number + 1))
    return [entry["input_sizes"] for entry in _recorder.recorder().trace()["entries"]]


def test_only_the_newest_calls_are_kept():
    for sizes in run_ranks(2, remembers, environment={"TORCH_FR_BUFFER_SIZE": "3"}):
        assert sizes == [[[8]], [[9]], [[10]]]


def has_many_groups(rank):
    from nccl_falcon import _recorder

    half = dist.split_group(split_ranks=[[1, 2], [0]], group_desc="half")
    dist.all_reduce(torch.ones(1), group=half)
    left = None if rank == 0 else dist.shrink_group([0])
    if left is not None:
        dist.all_reduce(torch.ones(2), group=left)
    told = _recorder.recorder().trace()
    ranks = {config["desc"]: (name, config["ranks"]) for name, config in told["pg_config"].items()}
    assert {entry["process_group"][0] for entry in told["entries"]} == set(told["pg_config"])
    if left is None:
        assert ranks["half"] == (half.group_name, "[0]")
        return
    assert ranks["default:shrunken"] == (left.group_name, "[1, 2]")
    # Shrinking the default group has destroyed it.
    assert [ranks for _, ranks in ranks.values()] == ["[1, 2]", "[1, 2]"]


def test_groups_have_pytorchs_names():
    run_ranks(3, has_many_groups)
