#!/usr/bin/env python3
"""The GPT of train.py with micro-batches that Falcon may split anew over the replicas where one turns slow.

    NCCL_FALCON=1 NCCL_FALCON_MITIGATE=auto torchrun --nproc-per-node 4 examples/pytorch/balance.py
    NCCL_FALCON=1 NCCL_FALCON_MITIGATE=auto torchrun --nproc-per-node 4 examples/pytorch/balance.py --stages 2
"""

import argparse
import contextlib
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import cross_entropy
from train import Gpt, batch

import nccl_falcon.torch

LENGTH = 64


def loss_of(told, targets):
    return cross_entropy(told.flatten(0, 1), targets.flatten())


def numbers_of(plan):
    return range(plan.first, plan.first + plan.micro_batches)


class Replica:
    """A whole model, under DDP."""

    def __init__(self, rank, replicas, rows):
        self.rows = rows
        self.layout = {"data": replicas, "data_index": rank}
        self.net = nn.parallel.DistributedDataParallel(Gpt())
        self.share = nccl_falcon.torch.GradientShare(1 / replicas)
        self.net.register_comm_hook(self.share, nccl_falcon.torch.share_gradients)

    def parameters(self):
        return self.net.parameters()

    def losses(self, iteration, plan):
        """Of this replica's micro-batches; leaves the gradient of all replicas'."""
        self.share.weight = plan.weight
        losses = []
        for number in numbers_of(plan):
            tokens, targets = batch(iteration, number, self.rows, LENGTH)
            with contextlib.nullcontext() if number == numbers_of(plan)[-1] else self.net.no_sync():
                loss = loss_of(self.net(tokens), targets)
                (loss / plan.micro_batches).backward()
            losses.append(loss.detach())
        return losses


class Part(nn.Module):
    """What a stage of a pipeline has of the model."""

    def __init__(self, gpt, stage, stages):
        super().__init__()
        each = len(gpt.blocks) // stages
        self.blocks = gpt.blocks[stage * each : len(gpt.blocks) if stage == stages - 1 else (stage + 1) * each]
        self.before = nn.ModuleList([gpt.symbols, gpt.places]) if stage == 0 else None
        self.after = nn.Sequential(gpt.last, gpt.told) if stage == stages - 1 else nn.Identity()

    def forward(self, inputs):
        if self.before is not None:
            symbols, places = self.before
            inputs = symbols(inputs) + places(torch.arange(inputs.size(1)))
        return self.after(self.blocks(inputs))


class Stage:
    """A stage of a pipeline, whose ranks stand side by side; the replicas of a stage sum their gradients."""

    def __init__(self, rank, replicas, stages, rows):
        self.rows, self.last = rows, rank % stages == stages - 1
        replica, self.number = divmod(rank, stages)
        self.layout = {"data": replicas, "data_index": replica, "pipeline": stages, "pipeline_index": self.number, "least": stages}
        pipelines = [dist.new_group([stages * each + stage for stage in range(stages)]) for each in range(replicas)]
        groups = [dist.new_group([stages * each + stage for each in range(replicas)]) for stage in range(stages)]
        self.share = nccl_falcon.torch.GradientShare(1 / replicas, groups[self.number])
        self.stage = PipelineStage(
            Part(Gpt(), self.number, stages), self.number, stages, torch.device("cpu"), group=pipelines[replica]
        )
        self.schedule, self.scheduled = None, 0

    def parameters(self):
        return self.stage.submod.parameters()

    def losses(self, iteration, plan):
        """Of this replica's micro-batches, on the last stage; leaves the gradient of all replicas'."""
        if self.scheduled != plan.micro_batches:
            self.scheduled = plan.micro_batches
            self.schedule = Schedule1F1B(self.stage, self.scheduled, loss_fn=loss_of)
        pairs = [batch(iteration, number, self.rows, LENGTH) for number in numbers_of(plan)]
        tokens, targets = (torch.cat(parts) for parts in zip(*pairs))
        losses = []
        inputs = [tokens] if self.number == 0 else []
        self.schedule.step(*inputs, **({"target": targets, "losses": losses} if self.last else {}))
        self.share.weight = plan.weight
        nccl_falcon.torch.sum_gradients(self.share, self.parameters())
        return [loss.detach() for loss in losses]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", default=60, type=float, help="how long to train at most")
    parser.add_argument("--until", type=Path, help="train until this file is there")
    parser.add_argument("--micro-batches", default=16, type=int, help="of one iteration, over all replicas")
    parser.add_argument("--rows", default=2, type=int, help="sequences of a micro-batch")
    parser.add_argument("--stages", default=1, type=int, choices=[1, 2, 4], help="of a pipeline; 1: each rank has a whole model")
    parser.add_argument("--times", help="file for a JSON object an iteration, of rank 0")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("falcon")
    rank, replicas = dist.get_rank(), dist.get_world_size() // arguments.stages
    if replicas * arguments.stages != dist.get_world_size():
        parser.error(f"{dist.get_world_size()} ranks are no multiple of --stages {arguments.stages}")
    torch.manual_seed(1)
    if arguments.stages == 1:
        part = Replica(rank, replicas, arguments.rows)
    else:
        part = Stage(rank, replicas, arguments.stages, arguments.rows)
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-3)
    job = nccl_falcon.torch.Job(nccl_falcon.torch.Layout(arguments.micro_batches, **part.layout))
    times = open(arguments.times, "w", buffering=1) if arguments.times and rank == 0 else None
    end = time.monotonic() + arguments.seconds
    iteration = 0
    while True:
        began = time.monotonic()
        plan = job.begin(iteration)
        losses = part.losses(iteration, plan)
        optimizer.step()
        optimizer.zero_grad()
        # The loss over all micro-batches, whether this is the last iteration (rank 0 says so), and the split.
        told = torch.zeros(2 + replicas)
        told[0] = sum(losses) / arguments.micro_batches
        told[1] = rank == 0 and (time.monotonic() > end or (arguments.until is not None and arguments.until.exists()))
        told[2 + part.layout["data_index"]] = plan.micro_batches / arguments.stages
        dist.all_reduce(told)
        loss, over, *split = told.tolist()
        split = [round(number) for number in split]
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
