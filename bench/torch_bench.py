#!/usr/bin/env python3
"""torch.distributed over falcon against gloo of the same PyTorch, in the same processes, in turns. Run by scripts/bench --torch.

Each rank has both process groups. A measurement is a number of calls without a pause, begun by a barrier of the store's; it counts with
its slowest rank. The two take turns, who goes first alternates; a cell is the median of its pairs' ratios.
"""

import argparse
import functools
import json
import math
import os
import statistics
import sys
import time
from datetime import timedelta

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist

import nccl_falcon  # noqa: F401

BACKENDS = ("falcon", "gloo")


def parse(size):
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)


def named(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def calls(collective, size, ranks, rank, group):
    """The call and nothing else; `size` is the larger of a rank's two buffers."""
    elements = max(size // 4, 1)
    block = max(elements // ranks, 1)
    whole = torch.zeros(block * ranks if collective != "all_reduce" else elements)
    part = torch.zeros(block)
    peers = (rank + 1) % ranks, (rank - 1) % ranks
    members = dist.get_process_group_ranks(group)

    def exchange():
        works = [
            dist.isend(part_sent, members[peers[0]], group=group),
            dist.irecv(part_got, members[peers[1]], group=group),
        ]
        for work in works:
            work.wait()

    part_sent, part_got = torch.zeros(elements), torch.zeros(elements)
    return {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "broadcast": lambda: dist.broadcast(whole, members[0], group=group),
        "reduce": lambda: dist.reduce(whole, members[0], group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole, group=group),
        "all_to_all": functools.partial(dist.all_to_all_single, torch.zeros_like(whole), whole, group=group),
        "gather": lambda: dist.gather(part, list(whole.chunk(ranks)) if rank == 0 else None, members[0], group=group),
        "scatter": lambda: dist.scatter(part, list(whole.chunk(ranks)) if rank == 0 else None, members[0], group=group),
        "send_recv": exchange,
        "barrier": lambda: dist.barrier(group=group),
    }[collective]


COLLECTIVES = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "send_recv", "barrier"]


def slowest(seconds, control):
    told = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(told, dist.ReduceOp.MAX, group=control)
    return told.item()


def timed(call, times, control):
    dist.barrier(group=control)
    began, processor = time.perf_counter(), time.process_time()
    for _ in range(times):
        call()
    return (
        slowest((time.perf_counter() - began) / times, control),
        slowest((time.process_time() - processor) / times, control),
    )


def run_rank(rank, ranks, port, arguments, output):
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, ranks, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=120))
    control = dist.new_group(backend="gloo")
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    for collective in arguments.collectives:
        for size in arguments.sizes if collective != "barrier" else [1]:
            way = {name: calls(collective, size, ranks, rank, group) for name, group in groups.items()}
            times = {}
            for name in BACKENDS:
                for _ in range(3):
                    way[name]()
                one, _ = timed(way[name], 3, control)
                times[name] = max(3, min(2000, math.ceil(arguments.seconds / max(one, 1e-6))))
            pairs = []
            for pair in range(arguments.pairs):
                order = BACKENDS if pair % 2 == 0 else BACKENDS[::-1]
                pairs.append({name: timed(way[name], times[name], control) for name in order})
            if rank == 0:
                cell = {"collective": collective, "ranks": ranks, "size": size}
                for name in BACKENDS:
                    cell[name] = statistics.median(pair[name][0] for pair in pairs) * 1e6
                    cell[f"{name}_processor"] = statistics.median(pair[name][1] for pair in pairs) * 1e6
                cell["ratio"] = statistics.median(pair["gloo"][0] / pair["falcon"][0] for pair in pairs)
                output(cell)
    dist.destroy_process_group()


def run_job(ranks, arguments, output):
    server = dist.TCPStore("127.0.0.1", 0, ranks, is_master=True, wait_for_workers=False)
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run_rank(rank, ranks, server.port, arguments, output)
                code = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    if any(os.waitpid(child, 0)[1] != 0 for child in children):
        sys.exit("scripts/bench --torch: a rank failed")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --torch", description=__doc__)
    parser.add_argument("--collectives", default=",".join(COLLECTIVES), type=lambda text: text.split(","))
    parser.add_argument("--ranks", default="2,4", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--sizes", default="1K,64K,1M,16M", type=lambda text: [parse(each) for each in text.split(",")])
    parser.add_argument("--pairs", default=5, type=int)
    parser.add_argument("--seconds", default=0.1, type=float, help="of each measurement")
    parser.add_argument("--output", help="JSON lines file of the cells")
    arguments = parser.parse_args()
    lines = open(arguments.output, "a") if arguments.output else None
    reader, writer = os.pipe()

    def output(cell):
        os.write(writer, (json.dumps(cell) + "\n").encode())

    ratios = []
    print(f"PyTorch {torch.__version__}, one host, medians of {arguments.pairs} pairs, us a call; processor: of a rank, us a call")
    print(f"{'collective':16}{'ranks':>6}{'size':>10}{'falcon':>12}{'gloo':>12}{'gloo/falcon':>13}{'processor':>12}{'gloo':>12}")
    for ranks in arguments.ranks:
        run_job(ranks, arguments, output)
        os.set_blocking(reader, False)
        told = b""
        while True:
            try:
                block = os.read(reader, 1 << 16)
            except BlockingIOError:
                break
            told += block
        for line in told.decode().splitlines():
            cell = json.loads(line)
            ratios.append(cell["ratio"])
            print(
                f"{cell['collective']:16}{cell['ranks']:>6}{named(cell['size']):>10}{cell['falcon']:>12.1f}{cell['gloo']:>12.1f}"
                f"{cell['ratio']:>13.2f}{cell['falcon_processor']:>12.1f}{cell['gloo_processor']:>12.1f}"
            )
            if lines:
                lines.write(line + "\n")
                lines.flush()
    print(f"geometric mean of gloo/falcon {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}")


main()
