"""Ranks for tests: forked processes of one process group."""

import faulthandler
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

import nccl_falcon  # noqa: F401  registers the backend

_fork = multiprocessing.get_context("fork")


class RankFailed(AssertionError):
    pass


def tell(what):
    """To whoever waits for it in wait_to_be_told()."""
    dist.distributed_c10d._get_default_store().set(what, "told")


def wait_to_be_told(what):
    """Until another rank tells it, however long that takes on a busy machine; a hang is one after 100 s."""
    dist.distributed_c10d._get_default_store().wait([what], timedelta(seconds=100))


def _body(rank, ranks, path, backend, timeout, results, body, arguments, environment):
    os.environ.update(environment)
    torch.set_num_threads(1)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    try:
        store = dist.FileStore(path, ranks)
        if backend is not None:
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout)
            )
        result = body(rank, *arguments)
        if dist.is_initialized():
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
    # Over a file: a store's server has threads, whose locks a fork may find taken for ever.
    folder = tempfile.mkdtemp()
    results = _fork.Queue()
    processes = [
        _fork.Process(
            target=_body,
            args=(rank, ranks, os.path.join(folder, "store"), backend, timeout, results, body, arguments, environment or {}),
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
                os.kill(process.pid, signal.SIGUSR1)  # shows its stacks
                time.sleep(0.3)
                os.kill(process.pid, signal.SIGKILL)
                failure = failure or f"process {process.pid} did not end"
                process.join()
        shutil.rmtree(folder, ignore_errors=True)
    if failure:
        raise RankFailed(failure)
    for rank, process in enumerate(processes):
        if rank not in lost and process.exitcode != 0:
            raise RankFailed(f"rank {rank} ended with {process.exitcode}")
    return [got.get(rank) for rank in range(ranks)]
