#!/usr/bin/env python3
"""The GPT of train.py with micro-batches that Falcon may split anew over the replicas where one turns slow.

    NCCL_FALCON=1 NCCL_FALCON_MITIGATE=auto torchrun --nproc-per-node 4 examples/pytorch/balance.py
"""

import argparse
import contextlib
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.functional import cross_entropy
from train import Gpt, batch

import nccl_falcon.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", default=60, type=float, help="how long to train at most")
    parser.add_argument("--until", type=Path, help="train until this file is there")
    parser.add_argument("--micro-batches", default=16, type=int, help="of one iteration, over all replicas")
    parser.add_argument("--rows", default=2, type=int, help="sequences of a micro-batch")
    parser.add_argument("--times", help="file for a JSON object an iteration, of rank 0")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("falcon")
    rank, replicas = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    net = nn.parallel.DistributedDataParallel(Gpt())
    share = nccl_falcon.torch.GradientShare(1 / replicas)
    net.register_comm_hook(share, nccl_falcon.torch.share_gradients)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    layout = nccl_falcon.torch.Layout(arguments.micro_batches, data=replicas, data_index=rank)
    job = nccl_falcon.torch.Job(layout)
    times = open(arguments.times, "w", buffering=1) if arguments.times and rank == 0 else None
    end = time.monotonic() + arguments.seconds
    iteration = 0
    while True:
        began = time.monotonic()
        plan = job.begin(iteration)
        share.weight = plan.weight
        # The loss over all micro-batches, whether this is the last iteration (rank 0 says so), and who computes how many of them.
        told = torch.zeros(2 + replicas)
        told[1] = rank == 0 and (time.monotonic() > end or (arguments.until is not None and arguments.until.exists()))
        told[2 + rank] = plan.micro_batches
        for number in range(plan.first, plan.first + plan.micro_batches):
            last = number == plan.first + plan.micro_batches - 1
            tokens, targets = batch(iteration, number, arguments.rows, 64)
            with contextlib.nullcontext() if last else net.no_sync():
                loss = cross_entropy(net(tokens).flatten(0, 1), targets.flatten())
                (loss / plan.micro_batches).backward()
            told[0] += loss.detach() / arguments.micro_batches
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(told)
        loss, over, *split = told.tolist()
        split = [int(number) for number in split]
        seconds = time.monotonic() - began
        if times is not None:
            print(json.dumps({"start": began, "end": began + seconds, "loss": loss, "split": split}), file=times)
        if rank == 0 and iteration % 20 == 0:
            print(f"iteration {iteration:4}  loss {loss:.3f}  {seconds * 1000:.0f} ms  micro-batches {split}", flush=True)
        if over:
            break
        iteration += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
