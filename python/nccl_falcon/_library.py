"""What the library offers without PyTorch."""

import contextlib
import functools

from . import _native


def nccl_version() -> int:
    """The version of NCCL's API, as ``ncclGetVersion`` tells it: 23203 is 2.32.3."""
    return _native.versions()[0]


def api_version() -> int:
    """The version of ``nccl_falcon.h`` (``NCCL_FALCON_API_VERSION``)."""
    return _native.versions()[1]


def library_path() -> str:
    """Where the package's ``libnccl.so.2`` lies: any program may take it for the vendor's (docs/drop-in.md)."""
    return _native.library_path()


@contextlib.contextmanager
def range(name: str):
    """Names what is done inside: "forward", "backward", "data". Falcon says which of them grew when a job turns slow.

    A few ten nanoseconds of the library's, and nothing while Falcon is off. Ranges of a thread nest.
    """
    _native.range_begin(name)
    try:
        yield
    finally:
        _native.range_end()


def ranged(name: str):
    """The same for a function: ``@nccl_falcon.ranged("forward")``."""

    def decorate(function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with range(name):
                return function(*args, **kwargs)

        return inside

    return decorate


def iteration_work(work: float) -> None:
    """Tells how much there is to do in this iteration (tokens without padding, say), so that times are judged by it."""
    _native.iteration_work(work)
