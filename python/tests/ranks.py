"""Ranks for tests: forked processes of one process group."""

import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

import nccl_falcon  # noqa: F401  registers the backend

_fork = multiprocessing.get_context("fork")


class RankFailed(AssertionError):
    pass


def _body(rank, ranks, port, backend, timeout, results, body, arguments, environment):
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        store = dist.TCPStore("127.0.0.1", port, ranks, is_master=False, timeout=timedelta(seconds=timeout))
        if backend is not None:
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout)
            )
        result = body(rank, *arguments)
        if backend is not None and dist.is_initialized():
            dist.destroy_process_group()
        results.put((rank, True, pickle.dumps(result)))
    except BaseException:
        results.put((rank, False, traceback.format_exc()))
        results.close()
        results.join_thread()
        os._exit(1)


def run_ranks(ranks, body, *arguments, backend="falcon", timeout=30, environment=None, lost=()):
    """body(rank, *arguments) on each rank, with the process group there; gives what they returned, by rank. Raises the
    first failure. `lost`: ranks that end without a word."""
    server = dist.TCPStore("127.0.0.1", 0, ranks, is_master=True, wait_for_workers=False)
    results = _fork.Queue()
    processes = [
        _fork.Process(
            target=_body,
            args=(rank, ranks, server.port, backend, timeout, results, body, arguments, environment or {}),
        )
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    got, failure, end = {}, None, time.monotonic() + timeout + 30
    try:
        while len(got) < ranks - len(lost) and failure is None:
            try:
                rank, well, result = results.get(timeout=0.2)
            except Exception:
                if time.monotonic() > end:
                    missing = sorted(set(range(ranks)) - set(got) - set(lost))
                    failure = f"ranks {missing} have not ended: {[p.exitcode for p in processes]}"
                continue
            if well:
                got[rank] = pickle.loads(result)
            else:
                failure = f"rank {rank}:\n{result}"
    finally:
        for process in processes:
            process.join(0 if failure else 20)
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
                failure = failure or f"process {process.pid} did not end"
                process.join()
    if failure:
        raise RankFailed(failure)
    for rank, process in enumerate(processes):
        if rank not in lost and process.exitcode != 0:
            raise RankFailed(f"rank {rank} ended with {process.exitcode}")
    return [got.get(rank) for rank in range(ranks)]
