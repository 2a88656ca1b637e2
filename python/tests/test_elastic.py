"""torchrun starts the job again where a rank fails, or where a machine's torchrun ends."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STEPS, LAST = 30, 15
MARK = "FALCON_TEST_ELASTIC"


def started(folder, how, last, falcon, *options):
    environment = {**os.environ, "NCCL_FALCON": falcon, MARK: str(folder)}
    command = [sys.executable, "-m", "torch.distributed.run", *options, HERE / "elastic.py", folder, str(STEPS), how, str(last)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def told(output):
    """What rank 0 said of each step, in order: (step, start of the job, ranks, loss)."""
    words = [line.split() for line in output.splitlines() if line.startswith("step ")]
    return [(int(each[1]), int(each[4]), int(each[6]), each[8]) for each in words]


def processes_of(folder):
    """Those that have the job's mark in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={folder}".encode() in (each / "environ").read_bytes().split(b"\0"):
                found.append((each.name, (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            pass  # it has ended, or is another user's
    return found


def shared_memory():
    """What lies there, but for the folder in which Falcon keeps the logs of ended jobs for a while."""
    return set(os.listdir("/dev/shm")) - {f"nccl-falcon-{os.getuid()}"}


def expect_nothing_left(folder, before):
    end = time.monotonic() + 60
    while (left := (processes_of(folder), shared_memory() - before)) != ([], set()) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == ([], set())


def trained(folder, how, last, falcon="0"):
    folder.mkdir()
    before = shared_memory()
    job = started(folder, how, last, falcon, "--standalone", "--nproc-per-node", "3", "--max-restarts", "1")
    output = job.communicate(timeout=300)[0]
    assert job.returncode == 0, output
    expect_nothing_left(folder, before)
    return told(output)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    said = trained(tmp_path_factory.mktemp("undisturbed") / "job", "killed", STEPS)
    assert [step for step, *_ in said] == list(range(STEPS))
    return {step: loss for step, _, _, loss in said}


# The store that torchrun keeps still has what the first start wrote.
@pytest.mark.parametrize("falcon", ["0", "1"])
@pytest.mark.parametrize("how", ["killed", "raised"])
def test_a_job_is_started_again_from_its_checkpoint(tmp_path, undisturbed, how, falcon):
    again = trained(tmp_path / "again", how, LAST, falcon)
    assert [step for step, start, _, _ in again if start == 0] == list(range(LAST))
    assert [step for step, start, _, _ in again if start == 1] == list(range(10, STEPS))
    assert all(undisturbed[step] == loss for step, _, _, loss in again)


@pytest.mark.parametrize("falcon", ["0", "1"])
def test_a_job_goes_on_with_fewer_ranks_where_an_agent_ends(tmp_path, falcon):
    """Two torchruns of two ranks stand for two machines. The one that is left starts its ranks again as a job of two."""
    folder = tmp_path / "job"
    folder.mkdir()
    before = shared_memory()
    with socket.socket() as kept:
        # The kernel gives the port to nobody else while it is bound here; torchrun, which allows to share it, can listen there.
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        options = ["--nnodes", "1:2", "--nproc-per-node", "2", "--max-restarts", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}"]
        # The host of the rendezvous has the ranks from 0 on, and stays. So long it waits for the other one, which has to import PyTorch first.
        conf = "last_call_timeout=15,keep_alive_interval=1,keep_alive_max_attempt=3"
        agents = [started(folder, "agent", LAST, falcon, *options, "--rdzv-conf", f"{conf},is_host={host}") for host in (1, 0)]
        outputs = [agent.communicate(timeout=300)[0] for agent in agents]
    assert sorted(agent.returncode == 0 for agent in agents) == [False, True], outputs
    expect_nothing_left(folder, before)
    said = told("".join(outputs))
    assert [(step, ranks) for step, start, ranks, _ in said if start == 0] == [(step, 4) for step in range(LAST)], outputs
    assert [(step, ranks) for step, start, ranks, _ in said if start == 1] == [(step, 2) for step in range(10, STEPS)], outputs
