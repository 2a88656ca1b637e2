"""What a collective gives back: done already, or going on beside Python."""

import itertools
import os
import threading
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from . import _native

# Python sees to its signals so often while it waits.
_PATIENCE = 1.0
_FOREVER = timedelta(days=10000)
# A process that ends waits so long for a future's callback.
_GRACE = 2.0


class Done(dist.Work):
    """Of an operation that is complete."""

    def __init__(self, results):
        super().__init__()
        self._results = results

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def is_success(self):
        return True

    def exception(self):
        return None

    def result(self):
        return self._results

    def get_future(self):
        future = torch.futures.Future()
        if _is_asked_for(self):
            return future
        future.set_result(self._results)
        return future


class Underway(dist.Work):
    """Of one that the library works on. Keeps what it works on.

    completions: all must end. finish(): what is left to do then, on whichever thread first sees it: to copy results to
    where they belong. end(text): ends the operations, which then fail with that text. failed(): is told of a failure.
    limit: the longest wait, where the operations have no timeout of their own; trouble() is then asked for a text that
    ends it earlier.
    """

    def __init__(self, results, completions, kept=None, finish=None, end=None, failed=None, limit=None, trouble=None):
        super().__init__()
        self._results = results
        self._completions = completions
        self._kept = kept
        self._finish = finish
        self.end = end
        self._failed = failed
        self._limit = limit
        self._trouble = trouble
        self._lock = threading.Lock()
        self._error = None
        self._settled = False
        # let_go(work), of who keeps it.
        self.let_go = None
        self._inner = self._future = None

    def ended(self) -> bool:
        return all(completion.ended() for completion in self._completions)

    def settle(self) -> None:
        """Once all has ended: finishes, once."""
        with self._lock:
            if self._settled:
                return
            text = next((text for one in self._completions if (text := one.error()) is not None), None)
            if text is not None:
                self._error = dist.DistBackendError(f"falcon: {text}")
            elif self._finish is not None:
                try:
                    # Whichever thread this is; and a tensor that wants a gradient is written to all the same.
                    with torch.no_grad():
                        self._finish()
                except Exception as error:
                    self._error = error
            self._kept = self._finish = None
            self._settled = True
        let_go, self.let_go = self.let_go, None
        if let_go is not None:
            let_go(self)
        if text is not None and self._failed is not None:
            self._failed()

    def wait(self, timeout=None):
        limit = timeout or self._limit or _FOREVER
        left = limit.total_seconds()
        for completion in self._completions:
            while not completion.wait(min(left, _PATIENCE)):
                left -= _PATIENCE
                if left <= 0:
                    self._give_up(f"the operation has not ended within {limit.total_seconds():g} s, its timeout")
                elif self._trouble is not None and (text := self._trouble()) is not None:
                    self._give_up(text)
        self.settle()
        if self._error is not None:
            raise self._error
        return True

    def _give_up(self, text) -> None:
        if self._failed is not None:
            self._failed()
        if self.end is not None:
            self.end(text)
        raise dist.DistBackendError(f"falcon: {text}")

    def is_completed(self):
        if not self.ended():
            return False
        self.settle()
        return True

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error if self.is_completed() else None

    def result(self):
        self.wait()
        return self._results

    def get_future(self):
        if _is_asked_for(self):
            return torch.futures.Future()
        with self._lock:
            if self._future is not None:
                return self._future
            # Only what a callback raises is an error to PyTorch's own code. What set_exception() leaves is a result there,
            # which DDP takes for its tensors.
            self._inner = torch.futures.Future()
            self._future = self._inner.then(self._outcome)
        if self.ended():
            self.fulfil()
        else:
            _futures.promise(self)
        return self._future

    def _outcome(self, _):
        if self._error is not None:
            raise self._error
        return self._results

    def fulfil(self) -> None:
        self.settle()
        self._inner.set_result(None)


# Whether this thread asks a work of PyTorch's for ours, and which it is.
_asking = threading.local()


def _is_asked_for(work) -> bool:
    if not getattr(_asking, "asks", False):
        return False
    _asking.found = work
    return True


def _ours(work):
    """What we gave to PyTorch, which handed out `work`; None: it is of another backend. Its get_future() asks ours for
    one, on this thread."""
    if type(work) is not dist.Work:
        return None  # a Python class, which answers itself
    _asking.asks, _asking.found = True, None
    try:
        work.get_future()
    except Exception:
        return None
    finally:
        found, _asking.asks, _asking.found = _asking.found, False, None
    return found


def make_outcomes_known() -> None:
    """PyTorch 2.15 hands out a Python backend's work inside of one of its own, which passes on wait() and get_future()
    only: is_completed() stays False for ever, and one that has failed looks as if it had not. Ours answer themselves;
    works of other backends as ever."""

    def forward(name):
        theirs = getattr(dist.Work, name)

        def ask(self):
            work = _ours(self)
            return theirs(self) if work is None else getattr(work, name)()

        ask.__name__, ask.__doc__ = name, theirs.__doc__
        setattr(dist.Work, name, ask)

    for name in ("is_completed", "is_success", "exception", "result"):
        forward(name)


class _Futures:
    """Sets futures when their works end, on threads of Python's own that sleep in the module: no thread of the library
    ever needs the interpreter. One does it all, in the order of the ends; but a future's callback may wait for another
    future (PowerSGD's does), so that where one is in a callback for long the next thread goes on."""

    # A callback that takes longer may be waiting.
    PATIENCE = 0.002

    def __init__(self):
        self._lock = threading.Lock()
        self._works = {}
        self._numbers = itertools.count(1)
        self._process = None
        self._threads = set()
        self._idle = 0
        self._turn = threading.Lock()

    def promise(self, work: Underway) -> None:
        with self._lock:
            number = next(self._numbers)
            self._works[number] = [work, len(work._completions)]
            if self._process != os.getpid():
                # The first, or in a forked child, which has none of its parent's threads.
                self._process, self._idle, self._threads, self._turn = os.getpid(), 0, set(), threading.Lock()
                _native.restart_finished()
            if not self._threads:
                self._start()
        for completion in work._completions:
            completion.notify(number)

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="nccl-falcon-fut", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # the interpreter is on its way out: who is there does it
        self._threads.add(thread)
        self._idle += 1

    def _serve(self) -> None:
        while numbers := _native.next_finished():
            with self._lock:
                self._idle -= 1
                if self._idle == 0:
                    self._start()
            for number in numbers:
                self._count_down(number)
            with self._lock:
                self._idle += 1
                if self._idle > 2:
                    self._idle -= 1
                    self._threads.discard(threading.current_thread())
                    return

    def _count_down(self, number: int) -> None:
        with self._lock:
            entry = self._works[number]
            entry[1] -= 1
            if entry[1] > 0:
                return
            del self._works[number]
        in_turn = self._turn.acquire(timeout=self.PATIENCE)
        try:
            entry[0].fulfil()
        except Exception:
            # A callback's; PyTorch keeps those of then(), and nobody else can be told.
            traceback.print_exc()
        finally:
            if in_turn:
                self._turn.release()

    def stop(self) -> None:
        if self._process != os.getpid():
            return
        _native.stop_finished()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(_GRACE)


_futures = _Futures()


def stop_futures() -> None:
    """Before the interpreter goes: afterwards no future is set any more."""
    _futures.stop()
