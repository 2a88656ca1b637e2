"""The newest calls of this process, written to a file when one of them fails: the flight recorder that PyTorch's users
know, in its format (version 2.10), for `torchfrtrace` to read.

PyTorch's own recorder hears of a Python backend's calls only when they begin, so that all of them look as if they went on.
"""

import collections
import itertools
import logging
import os
import pickle
import sys
import threading
import time
import weakref
from pathlib import Path

import torch
import torch.distributed as dist

from . import _types
from ._types import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, GATHER, RECEIVE, REDUCE, REDUCE_SCATTER, SCATTER, SEND

# PyTorch's name of a call: of one of its operations, and of several of a kind.
_ONE = {
    ALL_REDUCE: "all_reduce",
    BROADCAST: "broadcast",
    REDUCE: "reduce",
    ALL_GATHER: "_all_gather_base",
    REDUCE_SCATTER: "_reduce_scatter_base",
    ALL_TO_ALL: "all_to_all",
    GATHER: "gather",
    SCATTER: "scatter",
    SEND: "all_to_all",
    RECEIVE: "all_to_all",
}
_SEVERAL = _ONE | {
    ALL_REDUCE: "allreduce_coalesced",
    BROADCAST: "all_gather_v",
    REDUCE: "reduce_scatter_v",
    ALL_GATHER: "all_gather_into_tensor_coalesced",
    REDUCE_SCATTER: "reduce_scatter_tensor_coalesced",
}
_TYPE_NAMES = {
    _types.INT8: "Char",
    _types.UINT8: "Byte",
    _types.INT32: "Int",
    _types.UINT32: "UInt32",
    _types.INT64: "Long",
    _types.UINT64: "UInt64",
    _types.FLOAT16: "Half",
    _types.FLOAT32: "Float",
    _types.FLOAT64: "Double",
    _types.BFLOAT16: "BFloat16",
    _types.FLOAT8E4M3: "Float8_e4m3fn",
    _types.FLOAT8E5M2: "Float8_e5m2",
}
# A call's place in the script is shown with so many of its callers, ours not among them; each costs 0.1 us.
_MOST_FRAMES = 9
_PACKAGE = os.path.dirname(__file__) + os.sep


class Group:
    """What is told of a process group. Counts its calls: `sequence` those of all ranks, `messages` the others."""

    def __init__(self, name: str, rank: int, ranks: list, timeout, backend):
        """ranks: those of the job that are in it."""
        self.name, self.rank, self.ranks, self.size, self.timeout = name, rank, ranks, len(ranks), timeout
        self.description = "undefined"
        self.sequence = self.messages = self.calls = 0
        self._backend = weakref.ref(backend)

    def look(self) -> None:
        """PyTorch's name and description of it: it names a group that was split or shrunk after its backend was made."""
        for group, name in list(dist.distributed_c10d._world.pg_names.items()):
            if name == self.name or self._is_of(group):
                self.name, self.description = name, group.group_desc
                return

    def _is_of(self, group) -> bool:
        backend = self._backend()
        try:
            return backend is not None and group._get_backend(torch.device("cpu")) is backend
        except RuntimeError:
            return False  # it has none for this device


class Call:
    """One entry. Keeps no tensor: numbers and addresses only."""

    __slots__ = ("number", "group", "name", "operations", "begun", "frames", "sequence", "messages", "order", "completion", "over")

    def __init__(self, number, group, name, operations, frames):
        self.number, self.group, self.name, self.operations, self.frames = number, group, name, operations, frames
        self.begun = time.time_ns()
        self.sequence, self.messages, self.order = group.sequence, group.messages, group.calls
        self.completion, self.over = None, False

    def ended(self) -> bool:
        """Well: what failed has not."""
        if self.over or self.completion is None:
            return self.over
        return self.completion.ended() and self.completion.error() is None


class Recorder:
    """Any thread may use it."""

    def __init__(self, capacity: int):
        self._calls = collections.deque(maxlen=capacity)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._written = False

    def note(self, group: Group, operations, name=None) -> Call:
        """A call begins: `operations` as the module has them; `name` where they do not tell. A message's is "send" or
        "recv" with the two ranks."""
        group.calls += 1
        if _is_message(name):
            group.messages += 1
        else:
            group.sequence += 1
        call = Call(next(self._numbers), group, name, operations, _stack())
        self._calls.append(call)
        return call

    def failed(self) -> None:
        """Writes all that is kept, once; never raises."""
        with self._lock:
            if self._written or _is_unwanted():
                return
            self._written = True
            path = _path()
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                unfinished = path.with_name(f"{path.name}.{os.getpid()}")
                unfinished.write_bytes(pickle.dumps(self.trace()))
                unfinished.replace(path)
            except OSError as error:
                _log.warning("the trace of the newest calls could not be written to %s: %s", path, error)
            else:
                _log.warning("the newest calls of this rank are in %s; torchfrtrace compares those of all ranks", path)

    def trace(self) -> dict:
        calls = list(self._calls)
        for group in {call.group for call in calls}:
            group.look()
        groups = {call.group.name: call.group for call in calls}
        status = {
            name: {
                "last_enqueued_collective": group.sequence,
                "last_started_collective": group.sequence,
                "last_completed_collective": max((c.sequence for c in calls if c.group is group and c.ended()), default=-1),
            }
            for name, group in groups.items()
        }
        return {
            "version": "2.10",
            "comm_lib_version": "NCCL Falcon",
            "pg_config": {
                name: {"name": name, "desc": group.description, "ranks": str(group.ranks)} for name, group in groups.items()
            },
            "pg_status": status,
            "entries": [_entry(call) for call in calls],
        }


def _is_message(name) -> bool:
    return name is not None and name[:4] in ("send", "recv")


def _stack():
    """(code, instruction) of the callers: lines are looked up only where they are written."""
    frame, stack = sys._getframe(3), []
    for _ in range(_MOST_FRAMES):
        stack.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
        if frame is None:
            break
    return stack


def _line(code, instruction) -> int:
    for begin, end, line in code.co_lines():
        if begin <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def _entry(call: Call) -> dict:
    kinds = {operation[0] for operation in call.operations}
    kind = min(kinds, default=ALL_TO_ALL)
    name = call.name or (_SEVERAL if len(call.operations) > 1 else _ONE)[kind]
    if call.name is None and len(kinds) > 1 and not kinds <= {SEND, RECEIVE}:
        name = "coalesced"
    inputs = [operation for operation in call.operations if operation[0] != RECEIVE]
    outputs = [operation for operation in call.operations if operation[0] != SEND]
    ended = call.ended()
    return {
        "record_id": call.number,
        "pg_id": 0,
        "process_group": (call.group.name, call.group.description),
        "collective_seq_id": call.sequence,
        "p2p_seq_id": call.messages,
        "op_id": call.order,
        "is_p2p": _is_message(call.name),
        "profiling_name": f"falcon:{name}",
        "input_sizes": [[_elements(one, call.group.size, False)] for one in inputs],
        "input_dtypes": [_TYPE_NAMES[one[4]] for one in inputs],
        "output_sizes": [[_elements(one, call.group.size, True)] for one in outputs],
        "output_dtypes": [_TYPE_NAMES[one[4]] for one in outputs],
        "time_created_ns": call.begun,
        "time_discovered_started_ns": call.begun,
        "time_discovered_completed_ns": None,
        "timeout_ms": round(call.group.timeout.total_seconds() * 1000),
        "state": "completed" if ended else "started",
        "retired": ended,
        "thread_id": "",
        "thread_name": "",
        "frames": [
            {"name": code.co_qualname, "filename": code.co_filename, "line": _line(code, instruction)}
            for code, instruction in call.frames
            if not code.co_filename.startswith(_PACKAGE)
        ],
    }


def _elements(operation, ranks: int, is_output: bool) -> int:
    kind, count = operation[0], operation[3]
    larger = (ALL_GATHER, ALL_TO_ALL, GATHER) if is_output else (REDUCE_SCATTER, ALL_TO_ALL, SCATTER)
    return count * ranks if kind in larger else count


def _setting(*names, default: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


def _is_unwanted() -> bool:
    return _setting("TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT", default="1").lower() in ("0", "false", "n", "no")


def _path() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    prefix = _setting(
        "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", default=str(cache / "torch/comm_lib_trace_rank_")
    )
    rank = dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))
    return Path(f"{prefix}{rank}")


def _capacity() -> int:
    text = _setting("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", default="2000")
    try:
        return max(int(text), 0)
    except ValueError:
        raise ValueError(f"falcon: TORCH_FR_BUFFER_SIZE={text} is no number of calls to keep; 0 keeps none") from None


_log = logging.getLogger("nccl_falcon")
_recorders = {}


def recorder() -> Recorder | None:
    """This process's; a forked child has its own. None: nothing is to be kept."""
    process = os.getpid()
    if process not in _recorders:
        capacity = _capacity()
        _recorders.clear()
        _recorders[process] = Recorder(capacity) if capacity > 0 else None
    return _recorders[process]
