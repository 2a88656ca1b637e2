#!/usr/bin/env python3
"""torch.distributed over falcon against gloo of the same PyTorch, in the same processes, in turns. Run by scripts/bench --torch.

Each rank has a process group of falcon and two of gloo, which connects all ranks at once or as they are needed (lazily): what counts is the
faster of the two. A measurement is a number of calls without a pause, begun by a barrier; it counts with its slowest rank. All take turns,
who goes first changes; a cell is the median over its rounds of the faster gloo's time by falcon's.

gloo always uses TCP over loopback. falcon does too over `tcp` (NCCL_P2P_DISABLE, NCCL_SHM_DISABLE); on one `host` it shares memory.

With --ddp: steps of DistributedDataParallel on a net whose batch is chosen so that gloo's exchange takes half of the step.
"""

import argparse
import contextlib
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

import measured_code
import nccl_falcon  # noqa: F401

BACKENDS = ("falcon", "gloo", "gloo lazy")
TRANSPORTS = {"host": {}, "tcp": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}}


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


def groups_of_all():
    def gloo(lazy):
        options = dist.ProcessGroupGloo._Options()
        options._devices = [dist.ProcessGroupGloo.create_device(interface="lo", lazy_init=lazy)]
        options._timeout = timedelta(seconds=120)
        return dist.new_group(backend="gloo", pg_options=options)

    return {"falcon": dist.new_group(backend="falcon"), "gloo": gloo(False), "gloo lazy": gloo(True)}


def compare(ways, arguments, control):
    """Medians over the rounds: (seconds, processor seconds) of a call by name, and the faster gloo's time by falcon's."""
    times = {}
    for name in BACKENDS:
        for _ in range(3):
            ways[name]()
        one, _ = timed(ways[name], 3, control)
        times[name] = max(3, min(2000, math.ceil(arguments.seconds / max(one, 1e-6))))
    rounds = []
    for number in range(arguments.rounds):
        order = [BACKENDS[(number + place) % len(BACKENDS)] for place in range(len(BACKENDS))]
        rounds.append({name: timed(ways[name], times[name], control) for name in order})
    medians = {name: tuple(statistics.median(one[name][what] for one in rounds) for what in (0, 1)) for name in BACKENDS}
    best = min(BACKENDS[1:], key=lambda name: medians[name][0])
    return medians, best, statistics.median(one[best][0] / one["falcon"][0] for one in rounds)


def told(medians, best, ratio):
    return {
        "falcon": medians["falcon"][0] * 1e6,
        "falcon_processor": medians["falcon"][1] * 1e6,
        "gloo": medians[best][0] * 1e6,
        "gloo_processor": medians[best][1] * 1e6,
        "lazy": best == "gloo lazy",
        "ratio": ratio,
    }


def collectives(rank, ranks, groups, control, arguments, output):
    for collective in arguments.collectives:
        for size in arguments.sizes if collective != "barrier" else [1]:
            ways = {name: calls(collective, size, ranks, rank, group) for name, group in groups.items()}
            cell = told(*compare(ways, arguments, control))
            if rank == 0:
                output({"collective": collective, "size": size, **cell})


def ddp(rank, ranks, groups, control, arguments, output):
    """A step of a net of 2.1 million parameters with the batch at which gloo's exchange takes nearest to half of it."""
    torch.manual_seed(1)

    def net():
        return torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())])

    nets = {name: torch.nn.parallel.DistributedDataParallel(net(), process_group=group) for name, group in groups.items()}

    def step(name, batch, exchanging=True):
        inputs = torch.ones(batch, 512)

        def run():
            nets[name].zero_grad(set_to_none=False)
            with contextlib.nullcontext() if exchanging else nets[name].no_sync():
                nets[name](inputs).sum().backward()

        return run

    shares = {}
    for batch in (8, 16, 32, 64, 128, 256, 512):
        for run in (step("gloo", batch), step("gloo", batch, False)):
            run(), run()
        whole, alone = timed(step("gloo", batch), 5, control)[0], timed(step("gloo", batch, False), 5, control)[0]
        shares[batch] = 1 - alone / whole
    batch = min(shares, key=lambda each: abs(shares[each] - 0.5))
    cell = told(*compare({name: step(name, batch) for name in BACKENDS}, arguments, control))
    if rank == 0:
        output({"collective": f"DDP step, {shares[batch]:.2f}", "size": batch, **cell})


def run_rank(rank, ranks, transport, port, arguments, output):
    os.environ.update(TRANSPORTS[transport])
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, ranks, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=120))
    control = dist.new_group(backend="gloo")
    groups = groups_of_all()
    measure = ddp if arguments.ddp else collectives
    measure(rank, ranks, groups, control, arguments, lambda cell: output({"transport": transport, "ranks": ranks, **cell}))
    dist.destroy_process_group()


def run_job(ranks, transport, arguments, output):
    server = dist.TCPStore("127.0.0.1", 0, ranks, is_master=True, wait_for_workers=False)
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run_rank(rank, ranks, transport, server.port, arguments, output)
                code = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    if any(os.waitpid(child, 0)[1] != 0 for child in children):
        sys.exit("scripts/bench --torch: a rank failed")


def mean_of(cells):
    return math.exp(statistics.fmean(math.log(cell["ratio"]) for cell in cells))


def known(text):
    unknown = [each for each in text.split(",") if each not in TRANSPORTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(TRANSPORTS)}")
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --torch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collectives", default=",".join(COLLECTIVES), type=lambda text: text.split(","))
    parser.add_argument("--transports", default="host,tcp", type=known)
    parser.add_argument("--ranks", default="2,4,8", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--sizes", default="1K,64K,1M,16M,64M", type=lambda text: [parse(each) for each in text.split(",")])
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--seconds", default=0.1, type=float, help="of each measurement")
    parser.add_argument("--ddp", action="store_true", help="steps of DDP instead of collectives")
    parser.add_argument("--output", help="JSON lines file of the cells")
    arguments = parser.parse_args()
    lines = open(arguments.output, "a") if arguments.output else None
    reader, writer = os.pipe()
    os.set_blocking(reader, False)

    def output(cell):
        os.write(writer, (json.dumps(cell) + "\n").encode())

    cells = []
    print(f"PyTorch {torch.__version__}, medians of {arguments.rounds} rounds, us a call; processor: of a rank, us a call")
    code = measured_code.of_tree()
    print(code)
    print(
        f"{'':6}{'ranks':>6}  {'collective':16}{'batch' if arguments.ddp else 'size':>10}{'falcon':>12}{'gloo':>12}{'gloo/falcon':>13}"
        f"{'processor':>12}{'gloo':>12}"
    )
    for transport in arguments.transports:
        for ranks in arguments.ranks:
            run_job(ranks, transport, arguments, output)
            block, written = b"", b""
            while block is not None:
                written += block
                try:
                    block = os.read(reader, 1 << 16)
                except BlockingIOError:
                    block = None
            for line in written.decode().splitlines():
                cell = json.loads(line)
                cells.append(cell)
                size = str(cell["size"]) if arguments.ddp else named(cell["size"])
                print(
                    f"{transport:6}{ranks:>6}  {cell['collective']:16}{size:>10}{cell['falcon']:>12.1f}{cell['gloo']:>12.1f}"
                    f"{cell['ratio']:>13.2f}{cell['falcon_processor']:>12.1f}{cell['gloo_processor']:>12.1f}",
                    flush=True,
                )
                if lines:
                    lines.write(json.dumps(cell | measured_code.as_fields(code)) + "\n")
                    lines.flush()
    print("\nGeometric means of gloo/falcon, and the least of each:")
    for transport in arguments.transports:
        for ranks in arguments.ranks:
            own = [cell for cell in cells if cell["transport"] == transport and cell["ranks"] == ranks]
            print(f"  {transport}, {ranks} ranks: {mean_of(own):.2f}, least {min(cell['ratio'] for cell in own):.2f}")
        whole = [cell for cell in cells if cell["transport"] == transport]
        print(f"  {transport}: {mean_of(whole):.2f}, {sum(cell['ratio'] < 1 for cell in whole)} of {len(whole)} cells below 1.00")


main()
