"""torchrun starts the job again where a rank fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STEPS, LAST = 30, 15


def trained(folder, how, last, falcon="0"):
    """What rank 0 said of each step, in order: (step, start of the job, loss)."""
    folder.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "--max-restarts", "1"]
    done = subprocess.run(
        [*command, HERE / "elastic.py", folder, str(STEPS), how, str(last)],
        env={**os.environ, "NCCL_FALCON": falcon},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("step ")]
    return [(int(each[1]), each[4], each[6]) for each in words]


# The store that torchrun keeps still has what the first start wrote.
@pytest.mark.parametrize("how, falcon", [("killed", "1"), ("raised", "0")])
def test_a_job_is_started_again_from_its_checkpoint(tmp_path, how, falcon):
    undisturbed = trained(tmp_path / "undisturbed", how, STEPS)
    again = trained(tmp_path / "again", how, LAST, falcon)
    assert [step for step, start, _ in again if start == "0"] == list(range(LAST))
    assert [step for step, start, _ in again if start == "1"] == list(range(10, STEPS))
    losses = {step: loss for step, _, loss in undisturbed}
    assert all(losses[step] == loss for step, _, loss in again)
