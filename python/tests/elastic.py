"""What torchrun starts for test_elastic.py: elastic.py FOLDER STEPS HOW STEP. In the job's first start the last rank ends in the backward
pass of STEP: "killed", "raised", or "agent", where its torchrun goes with it. The others find out in theirs, and all are started again from the
newest checkpoint in FOLDER, as many as there are then."""

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoints

import nccl_falcon  # noqa: F401  makes the backend known


def end(how):
    if how == "raised":
        raise RuntimeError("a rank fails")
    if how == "agent":
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    folder, steps, how, last = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("falcon")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    first = 0
    state = {"net": net.state_dict(), "step": torch.zeros(1)}
    if whole := sorted(folder.glob("step*/.metadata")):
        checkpoints.load(state, checkpoint_id=whole[-1].parent)
        net.load_state_dict(state["net"])
        first = int(state["step"]) + 1
    start = "1" if whole else "0"
    dist.monitored_barrier()
    for step in range(first, steps):
        inputs = torch.randn(16, 32, generator=torch.Generator().manual_seed(step * 100 + rank))
        loss = ((net(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        if step == last and rank == size - 1 and start == "0":
            # The output's gradient is the first that is known: the others' are still computed and reduced.
            net.module[2].bias.register_hook(lambda _: end(how))
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            checkpoints.save({"net": net.state_dict(), "step": torch.tensor([float(step)])}, checkpoint_id=folder / f"step{step:05}")
        if rank == 0:
            print("step", step, "of start", start, "ranks", size, "loss", repr(loss.item()), flush=True)
    dist.destroy_process_group()


main()
