"""The c10d backend "falcon": PyTorch's collectives of CPU tensors on NCCL Falcon's host engine."""

import atexit
import collections
import hashlib
import os
import threading
import time
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist

from . import _native, _types
from ._messages import Messages
from ._recorder import Group, recorder
from ._register import NAME
from ._types import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, GATHER, RECEIVE, REDUCE, REDUCE_SCATTER, SCATTER, SEND
from ._work import Done, Underway, stop_futures

# As many dropped works are kept before those that have ended are let go.
_MOST_KEPT = 64
# A process that ends waits so long for operations that nobody waited for.
_GRACE = 2.0
# A job that is started again may find the store of the job before it: rank 0 may take so long to renew it.
_RENEWAL = 30.0

_backends = weakref.WeakSet()
# PyTorch's debug mode wraps a backend and keeps only what of it is C++: a Python backend would be lost.
_wrapped = set()


def create(options, backend_options=None):
    """What torch.distributed calls for each process group: `options` are c10d's DistributedBackendOptions."""
    timeout = getattr(backend_options, "_timeout", None) or options.timeout
    backend = FalconBackend(options.store, options.group_rank, options.group_size, timeout, options.group_id)
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        _wrapped.add(backend)
    return backend


def _dense(tensor):
    """The tensor, or what does for it: contiguous, of this process's memory. Raises ValueError."""
    if tensor.device.type != "cpu":
        raise ValueError(
            f'falcon: a tensor on {tensor.device}; this backend moves CPU tensors: init_process_group("cpu:falcon,cuda:nccl")'
        )
    if tensor.layout is not torch.strided:
        raise ValueError(f"falcon: a tensor of layout {tensor.layout}; pass a dense one: tensor.to_dense()")
    tensor = tensor.detach()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _one(tensors, what):
    if len(tensors) != 1:
        raise ValueError(f"falcon: {what} takes one tensor of each rank, not {len(tensors)}")
    return tensors[0]


def _bytes(tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _side_by_side(tensors) -> bool:
    """Whether they lie in memory as parts of one contiguous tensor."""
    expected = tensors[0].data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != expected or not tensor.is_contiguous() or tensor.is_conj():
            return False
        expected += _bytes(tensor)
    return True


class FalconBackend(torch._C._distributed_c10d.Backend):
    """One process group's part of the backend. Its communicator is made at once, by all ranks together; the ways of
    messages when the first one goes there.

    Operations without asyncOp are complete on return, on the caller's thread, and give no work; others go on the
    group's host stream.
    """

    def __init__(self, store, rank: int, size: int, timeout: timedelta, name: str = ""):
        super().__init__(rank, size)
        self._store = store
        self._rank, self._size = rank, size
        self._timeout = timeout
        self._name = name
        self._sequence = 0
        self._barriers = 0
        self._splits = 0
        self._shrinks = 0
        self._lock = threading.Lock()
        self._underway = collections.deque()
        self._coalesced = None
        self._closed = None
        self._goes_by_roles = False
        self._process = os.getpid()
        self._recorder = recorder()
        self._group = Group(name, rank, size, timeout)
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

    def _start(self, operations, asynchronous, results, kept=None, finish=None, name=None):
        """Runs the operations, or queues them. `finish` is what is left to do when they have ended; `name` is the
        call's for the recorder where the operations do not tell."""
        self._sequence += 1
        if self._coalesced is not None:
            self._coalesced.add(operations, results, kept, finish)
            return None
        communicator = self._communicator
        call = None if self._recorder is None else self._recorder.note(self._group, operations, name)
        try:
            if not asynchronous:
                if len(operations) == 1 and len(operations[0]) == 7:
                    communicator.run(*operations[0])
                else:
                    communicator.run_all(operations)
                if call is not None:
                    call.over = True
                if finish is not None:
                    finish()
                return None
            if len(operations) == 1 and len(operations[0]) == 7:
                completion = communicator.queue(*operations[0])
            else:
                completion = communicator.queue_all(operations)
        except _native.CallError as error:
            if communicator.failure() is not None or communicator.trouble() is not None:
                self._failed()
            raise dist.DistBackendError(f"falcon: {error}") from None
        if call is not None:
            call.completion = completion
        return self._keep(Underway(results, [completion], kept, finish, communicator.abort, self._failed))

    def _failed(self):
        """An operation has, and not because this process wants to end the group."""
        if self._closed is None and self._recorder is not None:
            self._recorder.failed()

    def _keep(self, work):
        """What its caller drops is kept until it has ended."""
        underway = self._underway
        underway.append(work)
        if len(underway) > _MOST_KEPT:
            self._sweep()
        return work

    def _sweep(self) -> bool:
        """Lets go what has ended; whether that was all."""
        with self._lock:
            left = collections.deque()
            while self._underway:
                work = self._underway.popleft()
                if work.ended():
                    work.settle()
                else:
                    left.append(work)
            self._underway.extendleft(reversed(left))
            return not left

    def _moved(self, kind, source, target, count_of, peer=-1):
        """An operation that only moves; `count_of` is the tensor whose size is the call's count."""
        number, factor = _types.moved(count_of.dtype)
        return (kind, source, target, count_of.numel() * factor, number, 0, peer)

    def _reduced(self, kind, source, target, count, dtype, op, peer=-1):
        number, factor, reduction = _types.reduced(dtype, op)
        operation = (kind, source, target, count * factor, number, reduction, peer)
        return (*operation, _types.scalar_of(op, dtype)) if reduction == _types.SCALED_SUM else operation

    def _prepared(self, tensor):
        """(what the library works on, whether that is a copy) for a reduction in place."""
        dense = _dense(tensor)
        as_type = _types.wider(tensor.dtype)
        if as_type is not None:
            dense = dense.to(as_type)
        return dense, dense.data_ptr() != tensor.data_ptr() or as_type is not None

    # Collectives.

    def allreduce(self, tensors, opts):
        tensor = _one(tensors, "all_reduce")
        dense, copied = self._prepared(tensor)
        address = dense.data_ptr()
        operation = self._reduced(ALL_REDUCE, address, address, dense.numel(), dense.dtype, opts.reduceOp)
        finish = (lambda: tensor.copy_(dense)) if copied else None
        return self._start([operation], opts.asyncOp, tensors, dense, finish)

    def allreduce_coalesced(self, tensors, opts):
        prepared = [(tensor, *self._prepared(tensor)) for tensor in tensors]
        operations = [
            self._reduced(ALL_REDUCE, dense.data_ptr(), dense.data_ptr(), dense.numel(), dense.dtype, opts.reduceOp)
            for _, dense, _ in prepared
        ]
        return self._start(operations, opts.asyncOp, tensors, prepared, lambda: _copy_back(prepared))

    def allreduce_sparse(self, tensors, opts):
        raise NotImplementedError("falcon: sparse tensors are not reduced; pass dense ones: tensor.to_dense()")

    def broadcast(self, tensors, opts):
        tensor = _one(tensors, "broadcast")
        dense = _dense(tensor)
        address = dense.data_ptr()
        copied = address != tensor.data_ptr() and self._rank != opts.rootRank
        operation = self._moved(BROADCAST, address, address, dense, opts.rootRank)
        finish = (lambda: tensor.copy_(dense)) if copied else None
        return self._start([operation], opts.asyncOp, tensors, dense, finish)

    def reduce(self, tensors, opts):
        tensor = _one(tensors, "reduce")
        dense, copied = self._prepared(tensor)
        address = dense.data_ptr()
        operation = self._reduced(REDUCE, address, address, dense.numel(), dense.dtype, opts.reduceOp, opts.rootRank)
        finish = (lambda: tensor.copy_(dense)) if copied and self._rank == opts.rootRank else None
        return self._start([operation], opts.asyncOp, tensors, dense, finish)

    def allgather(self, output_lists, inputs, opts):
        outputs, source = _one(output_lists, "all_gather"), _dense(_one(inputs, "all_gather"))
        self._expect(len(outputs) == self._size, f"all_gather gives {self._size} tensors, not {len(outputs)}")
        operations, kept, finish = self._gathered(outputs, source)
        return self._start(operations, opts.asyncOp, outputs, kept, finish)

    def _gathered(self, outputs, source):
        """The operations that gather every rank's `source` in `outputs`, what they need, and what is left to do."""
        self._expect_types(outputs, source)
        if any(output.numel() != outputs[0].numel() for output in outputs):
            return self._gathered_unevenly(outputs, source)
        self._expect(
            outputs[0].numel() == source.numel(),
            f"{source.numel()} elements to gather, but room for {outputs[0].numel()}",
        )
        if _side_by_side(outputs):
            return [self._moved(ALL_GATHER, source.data_ptr(), outputs[0].data_ptr(), source)], (source, outputs), None
        flat = source.new_empty((self._size, *source.shape))
        operation = self._moved(ALL_GATHER, source.data_ptr(), flat.data_ptr(), source)
        return [operation], (source, flat), lambda: _scatter_rows(flat, outputs)

    def _gathered_unevenly(self, outputs, source):
        own = outputs[self._rank]
        self._expect(own.numel() == source.numel(), f"{source.numel()} elements to gather, but room for {own.numel()}")
        own.copy_(source.view_as(own))
        prepared = [(output, dense := _dense(output), dense.data_ptr() != output.data_ptr()) for output in outputs]
        operations = [
            self._moved(BROADCAST, dense.data_ptr(), dense.data_ptr(), dense, root)
            for root, (_, dense, _) in enumerate(prepared)
        ]
        return operations, prepared, lambda: _copy_back(prepared)

    def all_gather_single(self, output, source, opts):
        target, dense = _dense(output), _dense(source)
        self._expect_types([output], source)
        self._expect(
            output.numel() == source.numel() * self._size,
            f"{self._size} times {source.numel()} elements to gather, but room for {output.numel()}",
        )
        operation = self._moved(ALL_GATHER, dense.data_ptr(), target.data_ptr(), dense)
        finish = (lambda: output.copy_(target)) if target.data_ptr() != output.data_ptr() else None
        return self._start([operation], opts.asyncOp, output, (target, dense), finish)

    _allgather_base = all_gather_single

    def allgather_coalesced(self, output_lists, inputs, opts):
        self._expect(
            len(output_lists) == self._size and all(len(each) == len(inputs) for each in output_lists),
            f"all_gather_coalesced of {len(inputs)} tensors gives as many of each of {self._size} ranks",
        )
        # output_lists[rank][i] is that rank's i-th input.
        parts = [self._gathered(outputs, _dense(source)) for outputs, source in zip(zip(*output_lists), inputs)]
        return self._many(parts, opts, output_lists)

    def all_gather_single_coalesced(self, outputs, inputs, opts):
        return self._many(
            [self._gathered([*output.view(-1).chunk(self._size)], _dense(source)) for output, source in zip(outputs, inputs, strict=True)],
            opts,
            outputs,
        )

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _many(self, parts, opts, results):
        operations = [operation for part in parts for operation in part[0]]
        finishes = [part[2] for part in parts if part[2] is not None]
        return self._start(operations, opts.asyncOp, results, parts, lambda: [finish() for finish in finishes])

    def reduce_scatter(self, outputs, input_lists, opts):
        output, inputs = _one(outputs, "reduce_scatter"), _one(input_lists, "reduce_scatter")
        self._expect(len(inputs) == self._size, f"reduce_scatter takes {self._size} tensors, not {len(inputs)}")
        operations, kept, finish = self._scattered(output, inputs, opts)
        return self._start(operations, opts.asyncOp, outputs, kept, finish)

    def _scattered(self, output, inputs, opts):
        self._expect_types(inputs, output)
        self._expect(
            inputs[self._rank].numel() == output.numel(),
            f"{inputs[self._rank].numel()} elements for this rank, but room for {output.numel()}",
        )
        target, copied = self._prepared(output)
        finish = (lambda: output.copy_(target)) if copied else None
        if any(each.numel() != output.numel() for each in inputs):
            sources = [self._prepared(each)[0].clone() for each in inputs]
            operations = [
                self._reduced(REDUCE, each.data_ptr(), target.data_ptr() if root == self._rank else each.data_ptr(), each.numel(), each.dtype, opts.reduceOp, root)
                for root, each in enumerate(sources)
            ]
            return operations, (target, sources), finish
        if _side_by_side(inputs) and _types.wider(output.dtype) is None:
            source, address = inputs, inputs[0].data_ptr()
        else:
            source = torch.cat([_dense(each).reshape(-1) for each in inputs]).to(target.dtype)
            address = source.data_ptr()
        operation = self._reduced(REDUCE_SCATTER, address, target.data_ptr(), target.numel(), target.dtype, opts.reduceOp)
        return [operation], (source, target), finish

    def reduce_scatter_single(self, output, source, opts):
        operations, kept, finish = self._scattered_single(output, source, opts)
        return self._start(operations, opts.asyncOp, output, kept, finish)

    _reduce_scatter_base = reduce_scatter_single

    def _scattered_single(self, output, source, opts):
        self._expect_types([output], source)
        self._expect(
            source.numel() == output.numel() * self._size,
            f"{source.numel()} elements to reduce and scatter, but room for {self._size} times {output.numel()}",
        )
        dense, _ = self._prepared(source)
        target, copied = self._prepared(output)
        operation = self._reduced(REDUCE_SCATTER, dense.data_ptr(), target.data_ptr(), target.numel(), target.dtype, opts.reduceOp)
        return [operation], (dense, target), (lambda: output.copy_(target)) if copied else None

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        parts = [self._scattered_single(output, source, opts) for output, source in zip(outputs, inputs, strict=True)]
        return self._many(parts, opts, outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(self, output, source, output_splits, input_splits, opts):
        self._expect_types([output], source)
        target, dense = _dense(output), _dense(source)
        finish = (lambda: output.copy_(target)) if target.data_ptr() != output.data_ptr() else None
        kept = (target, dense)
        if not output_splits and not input_splits:
            self._expect(
                output.numel() == source.numel() and source.numel() % self._size == 0,
                f"all_to_all_single of {source.numel()} elements into {output.numel()} between {self._size} ranks",
            )
            number, factor = _types.moved(source.dtype)
            count = source.numel() // self._size * factor
            operation = (ALL_TO_ALL, dense.data_ptr(), target.data_ptr(), count, number, 0, -1)
            return self._start([operation], opts.asyncOp, output, kept, finish)
        operations = [
            *self._parts(SEND, dense, self._splits_of(dense, input_splits)),
            *self._parts(RECEIVE, target, self._splits_of(target, output_splits)),
        ]
        return self._start(operations, opts.asyncOp, output, kept, finish)

    alltoall_base = all_to_all_single

    def _splits_of(self, tensor, splits):
        """Elements for each rank."""
        rows = tensor.size(0) if tensor.dim() else 1
        if not splits:
            self._expect(rows % self._size == 0, f"{rows} rows cannot be split evenly between {self._size} ranks")
            splits = [rows // self._size] * self._size
        self._expect(len(splits) == self._size, f"{len(splits)} split sizes for {self._size} ranks")
        self._expect(sum(splits) == rows, f"split sizes {list(splits)} for {rows} rows")
        row = tensor.numel() // rows if rows else 0
        return [split * row for split in splits]

    def _parts(self, kind, tensor, counts):
        number, factor = _types.moved(tensor.dtype)
        address, size = tensor.data_ptr(), tensor.element_size()
        for peer, count in enumerate(counts):
            if count:
                source, target = (address, 0) if kind == SEND else (0, address)
                yield (kind, source, target, count * factor, number, 0, peer)
            address += count * size

    def alltoall(self, outputs, inputs, opts):
        self._expect(
            len(outputs) == len(inputs) == self._size,
            f"all_to_all takes {self._size} tensors each way, not {len(inputs)} and {len(outputs)}",
        )
        sources = [_dense(each) for each in inputs]
        prepared = [(output, dense := _dense(output), dense.data_ptr() != output.data_ptr()) for output in outputs]
        operations = []
        for peer, (source, (_, target, _)) in enumerate(zip(sources, prepared)):
            if source.numel():
                operations.append(self._moved(SEND, source.data_ptr(), 0, source, peer))
            if target.numel():
                operations.append(self._moved(RECEIVE, 0, target.data_ptr(), target, peer))
        return self._start(operations, opts.asyncOp, outputs, (sources, prepared), lambda: _copy_back(prepared))

    def gather(self, output_lists, inputs, opts):
        source = _dense(_one(inputs, "gather"))
        if self._rank != opts.rootRank:
            self._expect(not output_lists, "gather gives tensors only to its root")
            return self._start([self._moved(GATHER, source.data_ptr(), 0, source, opts.rootRank)], opts.asyncOp, [], source)
        outputs = _one(output_lists, "gather")
        self._expect(len(outputs) == self._size, f"gather gives {self._size} tensors, not {len(outputs)}")
        self._expect_types(outputs, source)
        for output in outputs:
            self._expect(output.numel() == source.numel(), f"{source.numel()} elements to gather, but room for {output.numel()}")
        flat, finish = outputs[0], None
        if not _side_by_side(outputs):
            flat = source.new_empty((self._size, *source.shape))
            finish = lambda: _scatter_rows(flat, outputs)
        operation = self._moved(GATHER, source.data_ptr(), flat.data_ptr(), source, opts.rootRank)
        return self._start([operation], opts.asyncOp, outputs, (source, flat, outputs), finish)

    def scatter(self, outputs, input_lists, opts):
        output = _one(outputs, "scatter")
        target = _dense(output)
        finish = (lambda: output.copy_(target)) if target.data_ptr() != output.data_ptr() else None
        source, address = None, 0
        if self._rank == opts.rootRank:
            source = _one(input_lists, "scatter")
            self._expect(len(source) == self._size, f"scatter takes {self._size} tensors, not {len(source)}")
            self._expect_types(source, output)
            for each in source:
                self._expect(each.numel() == output.numel(), f"{each.numel()} elements to scatter, but room for {output.numel()}")
            if not _side_by_side(source):
                source = torch.cat([_dense(each).reshape(-1) for each in source])
                address = source.data_ptr()
            else:
                address = source[0].data_ptr()
        else:
            self._expect(not input_lists, "scatter takes tensors only from its root")
        operation = self._moved(SCATTER, address, target.data_ptr(), target, opts.rootRank)
        return self._start([operation], opts.asyncOp, outputs, (source, target), finish)

    def barrier(self, opts):
        token = torch.zeros(1, dtype=torch.uint8)
        operation = (ALL_REDUCE, token.data_ptr(), token.data_ptr(), 1, _types.UINT8, _types.SUM, -1)
        return self._start([operation], getattr(opts, "asyncOp", False), [token], token, name="barrier")

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
        self._expect_members("send")
        dense = _dense(_one(tensors, "send"))
        completion = self._messages.send(tag, dense.data_ptr(), _bytes(dense), peer)
        return self._message(tensors, completion, dense, None, SEND, peer)

    def recv(self, tensors, peer, tag):
        self._expect_members("recv")
        tensor = _one(tensors, "recv")
        dense = _dense(tensor)
        finish = (lambda: tensor.copy_(dense)) if dense.data_ptr() != tensor.data_ptr() else None
        completion = self._messages.receive(tag, dense.data_ptr(), _bytes(dense), peer)
        return self._message(tensors, completion, dense, finish, RECEIVE, peer)

    def recv_anysource(self, tensors, tag):
        raise NotImplementedError("falcon: recv from any source is not there; name the rank that sends: recv(tensor, src)")

    def _message(self, tensors, completion, kept, finish, kind, peer):
        if self._recorder is not None:
            name = f"send {self._rank}->{peer}" if kind == SEND else f"recv {self._rank}<-{peer}"
            operation = self._moved(kind, 0, 0, kept, peer)
            self._recorder.note(self._group, [operation], name).completion = completion
        work = Underway(
            tensors, [completion], kept, finish, self._messages.close, self._failed, self._timeout, self._communicator.trouble
        )
        if self._coalesced is not None:
            self._coalesced.works.append(work)
        return self._keep(work)

    # Several as one.

    def start_coalescing(self):
        if self._coalesced is not None:
            raise RuntimeError("falcon: coalescing has begun already on this process group")
        self._coalesced = _Coalesced()

    def end_coalescing(self):
        coalesced, self._coalesced = self._coalesced, None
        if coalesced is None:
            raise RuntimeError("falcon: coalescing has not begun on this process group")
        works = coalesced.works
        if coalesced.operations:
            works.append(
                self._start(coalesced.operations, True, coalesced.results, coalesced.kept, coalesced.finish)
            )
        if len(works) == 1:
            return works[0]
        completions = [completion for work in works for completion in work._completions]
        if not completions:
            return Done(coalesced.results)
        return self._keep(Underway(coalesced.results, completions, works, lambda: [work.settle() for work in works], self._communicator.abort, self._failed))

    # Life.

    def split(self, store, ranks, opts):
        self._expect_members("split_group")
        if self._rank not in ranks:
            return None
        timeout = getattr(opts, "_timeout", None) or self._timeout
        self._splits += 1
        name = f"{self._name}:split:{self._splits}"
        return FalconBackend(store, ranks.index(self._rank), len(ranks), timeout, name)

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
        return FalconBackend(store, left.index(self._rank), len(left), timeout, f"{self._name}:shrink:{self._shrinks}")

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
        if at_once:
            self._communicator.abort(text)
        self._messages.close(text)
        self._communicator.close()
        self._state.clear()
        _backends.discard(self)
        _wrapped.discard(self)

    def _set_sequence_number_for_group(self):
        self._sequence = 0

    def _get_sequence_number_for_group(self):
        return self._sequence

    def follow_roles(self):
        """Ranks have exchanged their roles, and the members of this group go by them: this process may have another
        place in it, among others."""
        self._rank = self._communicator.rank()
        self._goes_by_roles = True

    # Checks.

    def _expect_members(self, what):
        """PyTorch's ranks of the group, and its store, are those of its first members."""
        if self._goes_by_roles:
            raise RuntimeError(
                f"falcon: the members of this process group go by their roles, and these have been exchanged; {what} "
                "goes over a group of ranks: nccl_falcon.torch.Job.rank_of(role) says which rank has a role"
            )

    def _expect(self, holds, text):
        if not holds:
            raise ValueError(f"falcon: {text}")

    def _expect_types(self, tensors, other):
        for tensor in tensors:
            if tensor.dtype != other.dtype:
                raise ValueError(f"falcon: tensors of {tensor.dtype} and {other.dtype} in one operation")


class _Coalesced:
    """What is collected between start_coalescing() and end_coalescing(); messages are on their way already."""

    def __init__(self):
        self.operations, self.results, self.kept, self.finishes, self.works = [], [], [], [], []

    def add(self, operations, results, kept, finish):
        self.operations += operations
        self.results += results if isinstance(results, list) else [results]
        self.kept.append(kept)
        if finish is not None:
            self.finishes.append(finish)

    def finish(self):
        for finish in self.finishes:
            finish()


def _copy_back(prepared):
    for tensor, dense, copied in prepared:
        if copied:
            tensor.copy_(dense)


def _scatter_rows(flat, outputs):
    for row, output in zip(flat, outputs):
        output.copy_(row.view(output.shape))


def _end_of_process():
    """No memory of PyTorch's may be freed while the library works on it, and nothing may come back to Python after."""
    # A forked child has its parent's, but not their threads.
    backends = [backend for backend in _backends if backend._process == os.getpid()]
    end = time.monotonic() + _GRACE
    while not all([backend._sweep() for backend in backends]) and time.monotonic() < end:
        time.sleep(0.001)
    for backend in backends:
        backend._end("the process ends", not backend._sweep())
    for backend in backends:
        for work in backend._underway:
            for completion in work._completions:
                completion.wait(_GRACE)
    stop_futures()


atexit.register(_end_of_process)
