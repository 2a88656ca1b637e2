"""exits.py WAY TIMES: pairs of ranks that end as Python ends. Prints how many ended with 0.

A fork of a process that has imported everything: its end is the interpreter's real one, and it begins at once.
"""

import os
import shutil
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist

import nccl_falcon  # noqa: F401


def work(way, rank, path):
    store = dist.FileStore(path, 2)
    dist.init_process_group("falcon", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=20))
    tensors = [torch.ones(10_000) for _ in range(4)]
    works = [dist.all_reduce(each, async_op=True) for each in tensors]
    if way == "futures":
        for each in works:
            each.get_future().then(lambda future: future.value())
    elif way != "left open":
        for each in works:
            each.wait()
    if way == "left open":
        # One that cannot end: the other rank has no part in it.
        dist.irecv(torch.empty(10), 1 - rank)
        if rank == 0:
            dist.all_reduce(torch.ones(50_000), async_op=True)
    if way == "destroyed":
        dist.destroy_process_group()


def main(way, times):
    torch.set_num_threads(1)
    well = 0
    # Over a file: a store's server has a thread, and what has one cannot be ended in a fork.
    folder = tempfile.mkdtemp()
    for number in range(times):
        path = os.path.join(folder, str(number))
        children = []
        for rank in range(2):
            child = os.fork()
            if child == 0:
                work(way, rank, path)
                return None
            children.append(child)
        for child in children:
            _, status = os.waitpid(child, 0)
            if status == 0:
                well += 1
            else:
                print(f"a process ended with {os.waitstatus_to_exitcode(status)}")
    shutil.rmtree(folder)
    return well


ended_well = main(sys.argv[1], int(sys.argv[2]))
if ended_well is not None:
    print(ended_well)
