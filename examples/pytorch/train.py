#!/usr/bin/env python3
"""A small GPT trained data-parallel on CPUs: plain PyTorch, but for an import and the name of the backend.

    torchrun --nproc-per-node 2 examples/pytorch/train.py            # NCCL_FALCON=1 before it: Falcon watches the job
    torchrun --nproc-per-node 2 examples/pytorch/train.py --backend gloo
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.functional import cross_entropy

import nccl_falcon  # noqa: F401  makes the backend known


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mixing = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mixing = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, inputs):
        rows, length, width = inputs.shape
        split = self.queries_keys_values(self.before_attention(inputs)).view(rows, length, 3, self.heads, -1)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        inputs = inputs + self.joined(seen.transpose(1, 2).reshape(rows, length, width))
        return inputs + self.mixing(self.before_mixing(inputs))


class Gpt(nn.Module):
    def __init__(self, symbols=256, width=128, blocks=4, heads=4, length=64):
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.last, self.told = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.size(1), device=tokens.device)
        return self.told(self.last(self.blocks(self.symbols(tokens) + self.places(places))))


def batch(step, rank, rows, length):
    """Sequences that count up by a step of their own: something to learn."""
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    begin = torch.randint(0, 256, (rows, 1), generator=generator)
    pace = torch.randint(1, 4, (rows, 1), generator=generator)
    tokens = (begin + pace * torch.arange(length + 1)) % 256
    return tokens[:, :-1], tokens[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="falcon")
    parser.add_argument("--steps", default=200, type=int)
    parser.add_argument("--rows", default=8, type=int, help="sequences of a rank in a step")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend)
    rank = dist.get_rank()
    torch.manual_seed(1)
    net = nn.parallel.DistributedDataParallel(Gpt())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    if rank == 0:
        print(f"{sum(p.numel() for p in net.parameters()) / 1e6:.1f} million parameters, {dist.get_world_size()} ranks", flush=True)
    began = time.monotonic()
    for step in range(arguments.steps):
        tokens, targets = batch(step, rank, arguments.rows, 64)
        loss = cross_entropy(net(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % 20 == 0:
            print(f"step {step + 1:4}  loss {loss.item():.3f}  {(time.monotonic() - began) / 20 * 1000:.0f} ms a step", flush=True)
            began = time.monotonic()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
