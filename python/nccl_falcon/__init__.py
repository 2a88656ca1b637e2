"""NCCL Falcon for Python: ``import nccl_falcon`` registers the c10d backend "falcon" (docs/pytorch.md).

Without PyTorch there is what the library itself offers: versions, ranges, the work of an iteration, and events.
"""

import importlib.util as _importlib_util

from ._events import Culprit, Event, event_of, events, events_path
from ._library import api_version, iteration_work, library_path, nccl_version, range, ranged

__all__ = [
    "Culprit",
    "Event",
    "api_version",
    "event_of",
    "events",
    "events_path",
    "iteration_work",
    "library_path",
    "nccl_version",
    "range",
    "ranged",
]

if _importlib_util.find_spec("torch") is not None:
    # First PyTorch, whose own libnccl.so.2 must be found by its name before ours is there (src/library.cc).
    import torch as _torch

    from . import _register

    _register.register(_torch)
