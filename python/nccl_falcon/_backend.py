"""The c10d backend "falcon": PyTorch's collectives of CPU tensors on NCCL Falcon's host engine."""

import atexit
import collections
import functools
import hashlib
import os
import threading
import time
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

from . import _native
from ._messages import Messages
from ._operations import Operations, Prepared, in_memory, moving, only, size_of
from ._recorder import Group, recorder
from ._register import NAME
from ._types import RECEIVE, SEND
from ._work import Done, Underway, stop_futures

# Where more works are kept, all are looked at whether they have ended; before, only the oldest.
_MOST_KEPT = 64
# A process that ends waits so long for operations that nobody waited for.
_GRACE = 2.0
# A job that is started again may find the store of the job before it: rank 0 may take so long to renew it.
_RENEWAL = 30.0

_backends = weakref.WeakSet()
# Those that were closed while the library worked on memory of theirs.
_leaving = set()
# Set where the process ends: what then fails is nobody's loss.
_ending = threading.Event()
# PyTorch's debug mode wraps a backend and keeps only what of it is C++: a Python backend would be lost.
_wrapped = set()


def create(options, backend_options=None):
    """What torch.distributed calls for each process group: `options` are c10d's DistributedBackendOptions."""
    timeout = getattr(backend_options, "_timeout", None) or options.timeout
    _let_leave()
    ranks = list(options.global_ranks_in_group or range(options.group_size))
    backend = FalconBackend(options.store, options.group_rank, ranks, timeout, options.group_id)
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        _wrapped.add(backend)
    return backend


class FalconBackend(torch._C._distributed_c10d.Backend):
    """One process group's part of the backend. Its communicator is made at once, by all ranks together; the ways of
    messages when the first one goes there.

    Operations without asyncOp are complete on return, on the caller's thread, and give no work; others go on the
    group's host stream.
    """

    def __init__(self, store, rank: int, ranks: list, timeout: timedelta, name: str = ""):
        """ranks: those of the job that are in it, this one's at `rank`."""
        size = len(ranks)
        super().__init__(rank, size)
        self._store = store
        self._rank, self._size = rank, size
        self._timeout = timeout
        self._name, self._ranks = name, ranks
        self._sequence = 0
        self._barriers = 0
        self._splits = 0
        self._shrinks = 0
        self._lock = threading.Lock()
        self._underway = collections.OrderedDict()
        self._most_kept = _MOST_KEPT
        self._coalesced = None
        self._closed = None
        self._goes_by_roles = False
        # What the library calls where roles are exchanged (nccl_falcon.torch).
        self._role_hooks = None
        self._iteration_hook = None
        self._process = os.getpid()
        self._recorder = recorder()
        self._group = Group(name, rank, ranks, timeout, self)
        self._operations = Operations(rank, size)
        self._communicator = self._connect(timeout)
        self._messages = Messages(self._store, rank, size)
        # Tensors whose memory the library knows as the job's state (nccl_falcon.torch), by their names.
        self._state = {}
        _backends.add(self)

    def _connect(self, timeout):
        """torchrun keeps its store when it starts the job again, with all that was written there: what is read may be
        the id of a communicator that is gone, until rank 0 has written another one. TORCHELASTIC_RESTART_COUNT does not
        tell them apart: each agent counts its own failures."""
        key = "falcon/id"
        if self._rank == 0:
            self._store.set(key, _native.unique_id().hex())
        end = time.monotonic() + min(timeout.total_seconds(), _RENEWAL)
        while True:
            told = self._store.get(key).decode()
            try:
                communicator = _native.Communicator.create(bytes.fromhex(told), self._size, self._rank, timeout.total_seconds())
            except _native.CallError as error:
                if self._rank > 0 and self._is_renewed(key, told, end):
                    continue
                raise dist.DistBackendError(f"falcon: {error}") from None
            if self._rank == 0:
                self._store.delete_key(key)  # all have read it, and the next start is to wait for its own
            # No two communicators have the same id, so that nothing of an earlier one is read.
            self._store = dist.PrefixStore("falcon/" + hashlib.sha256(told.encode()).hexdigest()[:16], self._store)
            return communicator

    def _is_renewed(self, key, told, end) -> bool:
        try:
            while self._store.get(key).decode() == told:
                if time.monotonic() > end:
                    return False
                time.sleep(0.05)
        except RuntimeError:
            return False  # the store is gone with rank 0
        return True

    # What it is.

    def getBackendName(self):
        return NAME

    def name(self):
        return NAME

    @property
    def supports_splitting(self):
        return True

    @property
    def supports_coalescing(self):
        return True

    @property
    def supports_shrinking(self):
        return True

    @property
    def options(self):
        return self._options()

    def _options(self):
        options = torch._C._distributed_c10d.Backend.Options(NAME, self._timeout)
        return options

    # How operations run.

    def _start(self, prepared: Prepared, asynchronous: bool):
        """Runs the operations, or queues them."""
        self._sequence += 1
        if self._coalesced is not None:
            self._coalesced.add(prepared)
            return None
        operations, communicator = prepared.operations, self._communicator
        call = None if self._recorder is None else self._recorder.note(self._group, operations, prepared.name)
        is_one = len(operations) == 1 and len(operations[0]) == 7
        try:
            if not asynchronous:
                if is_one:
                    communicator.run(*operations[0])
                else:
                    communicator.run_all(operations)
                if call is not None:
                    call.over = True
                if prepared.finish is not None:
                    with torch.no_grad():
                        prepared.finish()
                return None
            completion = communicator.queue(*operations[0]) if is_one else communicator.queue_all(operations)
        except _native.CallError as error:
            if communicator.failure() is not None or communicator.trouble() is not None:
                self._failed()
            raise dist.DistBackendError(f"falcon: {error}") from None
        if call is not None:
            call.completion = completion
        return self._keep(
            Underway(prepared.results, [completion], prepared.kept, prepared.finish, communicator.abort, self._failed)
        )

    def _failed(self):
        """An operation has, and not because this process wants to end the group."""
        if self._closed is None and self._recorder is not None and not _ending.is_set():
            self._recorder.failed()

    def _keep(self, work):
        """What its caller drops is kept until it has ended."""
        with self._lock:
            ended = []
            while self._underway and (oldest := next(iter(self._underway))).ended():
                del self._underway[oldest]
                ended.append(oldest)
            self._underway[work] = None
            are_many = len(self._underway) > self._most_kept
        work.let_go = self._let_go
        for each in ended:
            each.settle()
        if are_many:
            self._sweep()
            # Not before there are twice as many again: each is looked at a few times only.
            self._most_kept = max(_MOST_KEPT, 2 * len(self._underway))
        return work

    def _let_go(self, work):
        with self._lock:
            self._underway.pop(work, None)

    def _sweep(self) -> bool:
        """Lets go what has ended; whether that was all."""
        with self._lock:
            ended = [work for work in self._underway if work.ended()]
            for work in ended:
                del self._underway[work]
            is_all = not self._underway
        for work in ended:
            work.settle()
        return is_all

    # Collectives.

    def _run(self, prepare, *arguments):
        """The last one: c10d's options."""
        try:
            return self._start(prepare(*arguments), getattr(arguments[-1], "asyncOp", False))
        except BaseException:
            self._coalesced = None  # PyTorch does not end what is coalesced then
            raise

    def allreduce(self, tensors, opts):
        return self._run(self._operations.allreduce, tensors, opts)

    def allreduce_coalesced(self, tensors, opts):
        return self._run(self._operations.allreduce_coalesced, tensors, opts)

    def allreduce_sparse(self, tensors, opts):
        raise NotImplementedError("falcon: sparse tensors are not reduced; pass dense ones: tensor.to_dense()")

    def broadcast(self, tensors, opts):
        return self._run(self._operations.broadcast, tensors, opts)

    def reduce(self, tensors, opts):
        return self._run(self._operations.reduce, tensors, opts)

    def allgather(self, output_lists, inputs, opts):
        return self._run(self._operations.allgather, output_lists, inputs, opts)

    def all_gather_single(self, output, source, opts):
        return self._run(self._operations.all_gather_single, output, source, opts)

    _allgather_base = all_gather_single

    def allgather_coalesced(self, output_lists, inputs, opts):
        return self._run(self._operations.allgather_coalesced, output_lists, inputs, opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts):
        return self._run(self._operations.all_gather_single_coalesced, outputs, inputs, opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(self, outputs, input_lists, opts):
        return self._run(self._operations.reduce_scatter, outputs, input_lists, opts)

    def reduce_scatter_single(self, output, source, opts):
        return self._run(self._operations.reduce_scatter_single, output, source, opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        return self._run(self._operations.reduce_scatter_single_coalesced, outputs, inputs, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(self, output, source, output_splits, input_splits, opts):
        return self._run(self._operations.all_to_all_single, output, source, output_splits, input_splits, opts)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs, inputs, opts):
        return self._run(self._operations.alltoall, outputs, inputs, opts)

    def gather(self, output_lists, inputs, opts):
        return self._run(self._operations.gather, output_lists, inputs, opts)

    def scatter(self, outputs, input_lists, opts):
        return self._run(self._operations.scatter, outputs, input_lists, opts)

    def barrier(self, opts):
        return self._run(self._operations.barrier, opts)

    def monitored_barrier(self, opts, wait_all_ranks=False):
        """Over the store, so that a rank which does not come is known by its number."""
        self._expect_members("monitored_barrier")
        timeout = opts.timeout if opts.timeout.total_seconds() > 0 else self._timeout
        self._barriers += 1
        key = f"falcon/barrier/{self._barriers}"
        if self._rank != 0:
            self._store.set(f"{key}/{self._rank}", "here")
            try:
                self._store.wait([f"{key}/outcome"], timeout)
                outcome = self._store.get(f"{key}/outcome").decode()
            except (RuntimeError, dist.DistError) as error:
                outcome = f"rank 0 did not come in time: {error}"
            if outcome != "passed":
                raise RuntimeError(
                    f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for "
                    f"send/recv from rank 0. Please check rank 0 logs for faulty rank. {outcome}"
                )
            return
        end = time.monotonic() + timeout.total_seconds()
        missing = []
        for rank in range(1, self._size):
            try:
                left = max(end - time.monotonic(), 0.001)
                self._store.wait([f"{key}/{rank}"], timedelta(seconds=left))
            except (RuntimeError, dist.DistError):
                missing.append(rank)
                if not wait_all_ranks:
                    break
        if not missing:
            self._store.set(f"{key}/outcome", "passed")
            return
        names = ", ".join(map(str, missing))
        text = (
            f"[Rank 0]: {'Rank' if len(missing) == 1 else 'Ranks'} {names} failed to pass monitoredBarrier in "
            f"{round(timeout.total_seconds() * 1000)} ms"
        )
        self._store.set(f"{key}/outcome", text)
        raise RuntimeError(text)

    # Messages.

    def send(self, tensors, peer, tag):
        return self._message(SEND, tensors, peer, tag)

    def recv(self, tensors, peer, tag):
        return self._message(RECEIVE, tensors, peer, tag)

    def recv_anysource(self, tensors, tag):
        raise NotImplementedError("falcon: recv from any source is not there; name the rank that sends: recv(tensor, src)")

    def _message(self, kind, tensors, peer, tag):
        try:
            work = self._posted(kind, tensors, peer, tag)
        except BaseException:
            self._coalesced = None
            raise
        if self._coalesced is not None:
            self._coalesced.works.append(work)
        return self._keep(work)

    def _posted(self, kind, tensors, peer, tag):
        what = "send" if kind == SEND else "recv"
        self._expect_members(what)
        tensor = only(tensors, what)
        dense = in_memory(tensor)
        finish = None
        if kind == SEND:
            ends, name = (self._rank, peer), f"send {self._rank}->{peer}"
            completion = self._messages.send(tag, dense.data_ptr(), size_of(dense), peer)
        else:
            ends, name = (peer, self._rank), f"recv {self._rank}<-{peer}"
            if dense.data_ptr() != tensor.data_ptr():
                finish = lambda: tensor.copy_(dense)
            completion = self._messages.receive(tag, dense.data_ptr(), size_of(dense), peer)
        if self._recorder is not None:
            operation = moving(kind, 0, 0, dense, peer)
            self._recorder.note(self._group, [operation], name).completion = completion
        end = functools.partial(self._messages.close_one, *ends)
        return Underway(tensors, [completion], dense, finish, end, self._failed, self._timeout, self._communicator.trouble)

    # Several as one.

    def start_coalescing(self):
        # Where something went wrong in the one before, PyTorch has not ended it.
        self._coalesced = _Coalesced()

    def end_coalescing(self):
        coalesced, self._coalesced = self._coalesced, None
        if coalesced is None and self._closed is not None:
            return Done([])  # PyTorch aborts groups in between
        if coalesced is None:
            raise RuntimeError("falcon: no calls are being coalesced on this process group; one of them may have failed")
        works = coalesced.works
        has_messages = len(works) > 0
        if coalesced.operations:
            works.append(self._start(coalesced.prepared(), True))
        if len(works) == 1:
            return works[0]
        completions = [completion for work in works for completion in work._completions]
        if not completions:
            return Done(coalesced.results)

        def finish():
            for work in works:
                work.settle()
            if (error := next((work.exception() for work in works if work.exception() is not None), None)) is not None:
                raise error

        def end(text):
            for work in works:
                if not work.ended():
                    work.end(text)

        # Collectives have the communicator's watchdog; messages have nobody but who waits.
        limit, trouble = (self._timeout, self._communicator.trouble) if has_messages else (None, None)
        return self._keep(Underway(coalesced.results, completions, works, finish, end, self._failed, limit, trouble))

    # Life.

    def split(self, store, ranks, opts):
        self._expect_members("split_group")
        if self._rank not in ranks:
            raise _NoMember(
                f"falcon: rank {self._rank} of the process group is in none of split_group's lists; give it a list of its own, "
                "or make the group with new_group"
            )
        timeout = getattr(opts, "_timeout", None) or self._timeout
        self._splits += 1
        name = getattr(opts, "group_name", None) or f"{self._name}:split:{self._splits}"
        return FalconBackend(store, ranks.index(self._rank), [self._ranks[rank] for rank in ranks], timeout, name)

    def shrink(self, ranks_to_exclude, shrink_flags=0, opts_override=None):
        """The group of the ranks that are left. They meet over the store anew, so that neither a dead rank nor a broken
        communicator of this group is in their way. Raises RuntimeError where operations are under way and
        SHRINK_ABORT does not say that they may be ended."""
        self._expect_members("shrink_group")
        excluded = set(ranks_to_exclude)
        left = [rank for rank in range(self._size) if rank not in excluded]
        if shrink_flags & dist.distributed_c10d.SHRINK_ABORT:
            self._communicator.abort("the process group was aborted to shrink it")
        elif not self._sweep():
            raise RuntimeError(
                "falcon: operations of this process group are under way; wait for them, or shrink it with SHRINK_ABORT"
            )
        self._shrinks += 1
        # An own connection: this group's may be in a call that waits.
        store = dist.PrefixStore(f"shrink/{self._shrinks}", self._store.clone())
        timeout = getattr(opts_override, "_timeout", None) or self._timeout
        ranks = [self._ranks[rank] for rank in left]
        return FalconBackend(store, left.index(self._rank), ranks, timeout, f"{self._name}:shrink:{self._shrinks}")

    def set_timeout(self, timeout):
        self._timeout = timeout
        self._communicator.set_timeout(timeout.total_seconds())

    def get_error(self):
        kinds = torch._C._distributed_c10d.ErrorType
        failure = self._communicator.failure()
        if failure is None:
            return kinds.SUCCESS
        return kinds.TIMEOUT if "timeout" in failure else kinds.COMM_ERROR

    def abort(self):
        self._end("the process group was aborted", True)

    def shutdown(self):
        self._end("the process group was destroyed", False)

    def _end(self, text, at_once):
        if self._closed is not None:
            return
        self._closed = text
        self._coalesced = None
        if at_once:
            self._communicator.abort(text)
        else:
            self._let_end(text)
        self._messages.close(text)
        self._communicator.close()
        self._state.clear()
        self._role_hooks = None
        if self._iteration_hook is not None:
            self._iteration_hook.forget()  # another thread may be in begin() still, which knows the hook itself
        _backends.discard(self)
        _wrapped.discard(self)
        if not self._sweep():
            _leaving.add(self)
        _let_leave()

    def _let_end(self, text):
        """What is queued, for as long as the timeout. The watchdog ends it sooner where nothing of it moves."""
        communicator = self._communicator
        was_well = communicator.failure() is None
        if not self._is_idle(self._timeout.total_seconds()):
            communicator.abort(f"{text}, and an operation had not ended within its timeout")
            self._is_idle(_GRACE)
        if was_well and communicator.failure() is not None and self._recorder is not None:
            self._recorder.failed()

    def _is_idle(self, limit) -> bool:
        """Waits for it so long."""
        end, pause = time.monotonic() + limit, 0.0001
        while self._communicator.busy():
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        return True

    def _set_sequence_number_for_group(self):
        self._sequence = 0

    def _get_sequence_number_for_group(self):
        return self._sequence

    def follow_roles(self):
        """Ranks have exchanged their roles, and the members of this group go by them: this process may have another
        place in it, among others."""
        self._rank = self._operations.rank = self._communicator.rank()
        self._goes_by_roles = True

    # Checks.

    def _expect_members(self, what):
        """PyTorch's ranks of the group, and its store, are those of its first members."""
        if self._goes_by_roles:
            raise RuntimeError(
                f"falcon: the members of this process group go by their roles, and these have been exchanged; {what} "
                "goes over a group of ranks: nccl_falcon.torch.Job.rank_of(role) says which rank has a role"
            )


class _Coalesced:
    """What is collected between start_coalescing() and end_coalescing(); messages are on their way already."""

    def __init__(self):
        self.operations, self.results, self.kept, self.finishes, self.works = [], [], [], [], []

    def add(self, prepared: Prepared):
        self.operations += prepared.operations
        self.results += prepared.results if isinstance(prepared.results, list) else [prepared.results]
        self.kept.append(prepared.kept)
        if prepared.finish is not None:
            self.finishes.append(prepared.finish)

    def prepared(self) -> Prepared:
        return Prepared(self.operations, self.results, self.kept, self.finish)

    def finish(self):
        for finish in self.finishes:
            finish()


class _NoMember(RuntimeError):
    """This rank has no part in the group that is being made."""


def make_non_members_known() -> None:
    """PyTorch 2.15 cannot be told by a Python backend that a rank is in none of split_group's lists."""
    theirs = dist.distributed_c10d.split_group

    @functools.wraps(theirs)
    def split_group(parent_pg=None, *arguments, **named):
        try:
            return theirs(parent_pg, *arguments, **named)
        except _NoMember:
            # Another backend's ranks may make theirs all together, this one too.
            group = parent_pg or dist.group.WORLD
            if len(group._device_types) > 1:
                raise
            return dist.GroupMember.NON_GROUP_MEMBER

    dist.distributed_c10d.split_group = dist.split_group = split_group


def _let_leave() -> None:
    for backend in list(_leaving):
        if backend._sweep():
            _leaving.discard(backend)


def _end_of_process():
    """No memory of PyTorch's may be freed while the library works on it, and nothing may come back to Python after."""
    _ending.set()
    # A forked child has its parent's, but not their threads.
    backends = [backend for backend in [*_backends, *_leaving] if backend._process == os.getpid()]
    end = time.monotonic() + _GRACE
    while not all([backend._sweep() for backend in backends]) and time.monotonic() < end:
        time.sleep(0.001)
    for backend in backends:
        backend._end("the process ends", not backend._sweep() or backend._communicator.busy())
    for backend in backends:
        for work in list(backend._underway):
            for completion in work._completions:
                completion.wait(_GRACE)
    stop_futures()


atexit.register(_end_of_process)
