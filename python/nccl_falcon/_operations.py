"""What each of PyTorch's collectives is to the library: the operations, what they work on, and what is left to do."""

import typing

import torch

from . import _types
from ._types import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, GATHER, RECEIVE, REDUCE, REDUCE_SCATTER, SCATTER, SEND


class Prepared(typing.NamedTuple):
    """operations: as the module has them. results: what a work gives. kept: what must live until all has ended.
    finish(): what is left to do then; None: nothing. name: the call's where the operations do not tell."""

    operations: list
    results: typing.Any
    kept: typing.Any = None
    finish: typing.Callable | None = None
    name: str | None = None


def in_memory(tensor):
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


def only(tensors, what):
    if len(tensors) != 1:
        raise ValueError(f"falcon: {what} takes one tensor of each rank, not {len(tensors)}")
    return tensors[0]


def size_of(tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _side_by_side(tensors) -> bool:
    """Whether they lie in memory as parts of one contiguous tensor."""
    expected = tensors[0].data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != expected or not tensor.is_contiguous() or tensor.is_conj():
            return False
        expected += size_of(tensor)
    return True


def moving(kind, source, target, count_of, peer=-1):
    """An operation that only moves; `count_of` is the tensor whose size is the call's count."""
    number, factor = _types.moved(count_of.dtype)
    return (kind, source, target, count_of.numel() * factor, number, 0, peer)


def _reduced(kind, source, target, count, dtype, op, peer=-1):
    number, factor, reduction = _types.reduced(dtype, op)
    operation = (kind, source, target, count * factor, number, reduction, peer)
    return (*operation, _types.scalar_of(op, dtype)) if reduction == _types.SCALED_SUM else operation


def _prepared(tensor):
    """(what the library works on, whether that is a copy) for a reduction in place."""
    dense = in_memory(tensor)
    as_type = _types.wider(tensor.dtype)
    if as_type is not None:
        dense = dense.to(as_type)
    return dense, dense.data_ptr() != tensor.data_ptr() or as_type is not None


def _expect(holds, text):
    if not holds:
        raise ValueError(f"falcon: {text}")


def _expect_types(tensors, other):
    for tensor in tensors:
        if tensor.dtype != other.dtype:
            raise ValueError(f"falcon: tensors of {tensor.dtype} and {other.dtype} in one operation")


def _copy_back(prepared):
    for tensor, dense, copied in prepared:
        if copied:
            tensor.copy_(dense)


def _scatter_rows(flat, outputs):
    for row, output in zip(flat, outputs):
        output.copy_(row.view(output.shape))


class Operations:
    """Of a process group of `size` ranks, for its rank `rank`. The functions have the names and arguments of c10d's
    backends. They raise ValueError for what cannot be."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size

    def allreduce(self, tensors, opts):
        tensor = only(tensors, "all_reduce")
        dense, copied = _prepared(tensor)
        address = dense.data_ptr()
        operation = _reduced(ALL_REDUCE, address, address, dense.numel(), dense.dtype, opts.reduceOp)
        finish = (lambda: tensor.copy_(dense)) if copied else None
        return Prepared([operation], tensors, dense, finish)

    def allreduce_coalesced(self, tensors, opts):
        prepared = [(tensor, *_prepared(tensor)) for tensor in tensors]
        operations = [
            _reduced(ALL_REDUCE, dense.data_ptr(), dense.data_ptr(), dense.numel(), dense.dtype, opts.reduceOp)
            for _, dense, _ in prepared
        ]
        return Prepared(operations, tensors, prepared, lambda: _copy_back(prepared))

    def broadcast(self, tensors, opts):
        tensor = only(tensors, "broadcast")
        dense = in_memory(tensor)
        address = dense.data_ptr()
        copied = address != tensor.data_ptr() and self.rank != opts.rootRank
        operation = moving(BROADCAST, address, address, dense, opts.rootRank)
        finish = (lambda: tensor.copy_(dense)) if copied else None
        return Prepared([operation], tensors, dense, finish)

    def reduce(self, tensors, opts):
        tensor = only(tensors, "reduce")
        dense, copied = _prepared(tensor)
        address = dense.data_ptr()
        operation = _reduced(REDUCE, address, address, dense.numel(), dense.dtype, opts.reduceOp, opts.rootRank)
        finish = (lambda: tensor.copy_(dense)) if copied and self.rank == opts.rootRank else None
        return Prepared([operation], tensors, dense, finish)

    def allgather(self, output_lists, inputs, opts):
        outputs, source = only(output_lists, "all_gather"), in_memory(only(inputs, "all_gather"))
        _expect(len(outputs) == self.size, f"all_gather gives {self.size} tensors, not {len(outputs)}")
        operations, kept, finish = self._gathered(outputs, source)
        return Prepared(operations, outputs, kept, finish)

    def _gathered(self, outputs, source):
        """The operations that gather every rank's `source` in `outputs`, what they need, and what is left to do."""
        _expect_types(outputs, source)
        if any(output.numel() != outputs[0].numel() for output in outputs):
            return self._gathered_unevenly(outputs, source)
        _expect(
            outputs[0].numel() == source.numel(),
            f"{source.numel()} elements to gather, but room for {outputs[0].numel()}",
        )
        if _side_by_side(outputs):
            return [moving(ALL_GATHER, source.data_ptr(), outputs[0].data_ptr(), source)], (source, outputs), None
        flat = source.new_empty((self.size, *source.shape))
        operation = moving(ALL_GATHER, source.data_ptr(), flat.data_ptr(), source)
        return [operation], (source, flat), lambda: _scatter_rows(flat, outputs)

    def _gathered_unevenly(self, outputs, source):
        own = outputs[self.rank]
        _expect(own.numel() == source.numel(), f"{source.numel()} elements to gather, but room for {own.numel()}")
        own.detach().copy_(source.view_as(own))
        prepared = [(output, dense := in_memory(output), dense.data_ptr() != output.data_ptr()) for output in outputs]
        operations = [
            moving(BROADCAST, dense.data_ptr(), dense.data_ptr(), dense, root)
            for root, (_, dense, _) in enumerate(prepared)
        ]
        return operations, prepared, lambda: _copy_back(prepared)

    def all_gather_single(self, output, source, opts):
        operations, kept, finish = self._gathered_single(output, source)
        return Prepared(operations, [output], kept, finish)

    def _gathered_single(self, output, source):
        target, dense = in_memory(output), in_memory(source)
        _expect_types([output], source)
        _expect(
            output.numel() == source.numel() * self.size,
            f"{self.size} times {source.numel()} elements to gather, but room for {output.numel()}",
        )
        operation = moving(ALL_GATHER, dense.data_ptr(), target.data_ptr(), dense)
        finish = (lambda: output.copy_(target)) if target.data_ptr() != output.data_ptr() else None
        return [operation], (target, dense), finish

    def allgather_coalesced(self, output_lists, inputs, opts):
        _expect(
            len(output_lists) == self.size and all(len(each) == len(inputs) for each in output_lists),
            f"all_gather_coalesced of {len(inputs)} tensors gives as many of each of {self.size} ranks",
        )
        # output_lists[rank][i] is that rank's i-th input.
        parts = [self._gathered(outputs, in_memory(source)) for outputs, source in zip(zip(*output_lists), inputs)]
        return self._many(parts, output_lists)

    def all_gather_single_coalesced(self, outputs, inputs, opts):
        return self._many([self._gathered_single(output, source) for output, source in zip(outputs, inputs, strict=True)], outputs)

    def _many(self, parts, results):
        operations = [operation for part in parts for operation in part[0]]
        finishes = [part[2] for part in parts if part[2] is not None]
        return Prepared(operations, results, parts, lambda: [finish() for finish in finishes])

    def reduce_scatter(self, outputs, input_lists, opts):
        output, inputs = only(outputs, "reduce_scatter"), only(input_lists, "reduce_scatter")
        _expect(len(inputs) == self.size, f"reduce_scatter takes {self.size} tensors, not {len(inputs)}")
        operations, kept, finish = self._scattered(output, inputs, opts)
        return Prepared(operations, outputs, kept, finish)

    def _scattered(self, output, inputs, opts):
        _expect_types(inputs, output)
        _expect(
            inputs[self.rank].numel() == output.numel(),
            f"{inputs[self.rank].numel()} elements for this rank, but room for {output.numel()}",
        )
        target, copied = _prepared(output)
        finish = (lambda: output.copy_(target)) if copied else None
        if any(each.numel() != output.numel() for each in inputs):
            sources = [_prepared(each)[0].clone() for each in inputs]
            operations = [
                _reduced(REDUCE, each.data_ptr(), target.data_ptr() if root == self.rank else each.data_ptr(), each.numel(), each.dtype, opts.reduceOp, root)
                for root, each in enumerate(sources)
            ]
            return operations, (target, sources), finish
        if _side_by_side(inputs) and _types.wider(output.dtype) is None:
            source, address = inputs, inputs[0].data_ptr()
        else:
            source = torch.cat([in_memory(each).reshape(-1) for each in inputs]).to(target.dtype)
            address = source.data_ptr()
        operation = _reduced(REDUCE_SCATTER, address, target.data_ptr(), target.numel(), target.dtype, opts.reduceOp)
        return [operation], (source, target), finish

    def reduce_scatter_single(self, output, source, opts):
        operations, kept, finish = self._scattered_single(output, source, opts)
        return Prepared(operations, [output], kept, finish)

    def _scattered_single(self, output, source, opts):
        _expect_types([output], source)
        _expect(
            source.numel() == output.numel() * self.size,
            f"{source.numel()} elements to reduce and scatter, but room for {self.size} times {output.numel()}",
        )
        dense, _ = _prepared(source)
        target, copied = _prepared(output)
        operation = _reduced(REDUCE_SCATTER, dense.data_ptr(), target.data_ptr(), target.numel(), target.dtype, opts.reduceOp)
        return [operation], (dense, target), (lambda: output.copy_(target)) if copied else None

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        parts = [self._scattered_single(output, source, opts) for output, source in zip(outputs, inputs, strict=True)]
        return self._many(parts, outputs)

    def all_to_all_single(self, output, source, output_splits, input_splits, opts):
        _expect_types([output], source)
        target, dense = in_memory(output), in_memory(source)
        finish = (lambda: output.copy_(target)) if target.data_ptr() != output.data_ptr() else None
        kept = (target, dense)
        if not output_splits and not input_splits:
            _expect(
                output.numel() == source.numel() and source.numel() % self.size == 0,
                f"all_to_all_single of {source.numel()} elements into {output.numel()} between {self.size} ranks",
            )
            number, factor = _types.moved(source.dtype)
            count = source.numel() // self.size * factor
            operation = (ALL_TO_ALL, dense.data_ptr(), target.data_ptr(), count, number, 0, -1)
            return Prepared([operation], [output], kept, finish)
        operations = [
            *self._parts(SEND, dense, self._splits_of(dense, input_splits)),
            *self._parts(RECEIVE, target, self._splits_of(target, output_splits)),
        ]
        return Prepared(operations, [output], kept, finish)

    def _splits_of(self, tensor, splits):
        """Elements for each rank."""
        rows = tensor.size(0) if tensor.dim() else 1
        if not splits:
            _expect(rows % self.size == 0, f"{rows} rows cannot be split evenly between {self.size} ranks")
            splits = [rows // self.size] * self.size
        _expect(len(splits) == self.size, f"{len(splits)} split sizes for {self.size} ranks")
        _expect(sum(splits) == rows, f"split sizes {list(splits)} for {rows} rows")
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
        _expect(
            len(outputs) == len(inputs) == self.size,
            f"all_to_all takes {self.size} tensors each way, not {len(inputs)} and {len(outputs)}",
        )
        sources = [in_memory(each) for each in inputs]
        prepared = [(output, dense := in_memory(output), dense.data_ptr() != output.data_ptr()) for output in outputs]
        operations = []
        for peer, (source, (_, target, _)) in enumerate(zip(sources, prepared)):
            if source.numel():
                operations.append(moving(SEND, source.data_ptr(), 0, source, peer))
            if target.numel():
                operations.append(moving(RECEIVE, 0, target.data_ptr(), target, peer))
        return Prepared(operations, outputs, (sources, prepared), lambda: _copy_back(prepared))

    def gather(self, output_lists, inputs, opts):
        source = in_memory(only(inputs, "gather"))
        if self.rank != opts.rootRank:
            _expect(not output_lists, "gather gives tensors only to its root")
            return Prepared([moving(GATHER, source.data_ptr(), 0, source, opts.rootRank)], [], source)
        outputs = only(output_lists, "gather")
        _expect(len(outputs) == self.size, f"gather gives {self.size} tensors, not {len(outputs)}")
        _expect_types(outputs, source)
        for output in outputs:
            _expect(output.numel() == source.numel(), f"{source.numel()} elements to gather, but room for {output.numel()}")
        flat, finish = outputs[0], None
        if not _side_by_side(outputs):
            flat = source.new_empty((self.size, *source.shape))
            finish = lambda: _scatter_rows(flat, outputs)
        operation = moving(GATHER, source.data_ptr(), flat.data_ptr(), source, opts.rootRank)
        return Prepared([operation], outputs, (source, flat, outputs), finish)

    def scatter(self, outputs, input_lists, opts):
        output = only(outputs, "scatter")
        target = in_memory(output)
        finish = (lambda: output.copy_(target)) if target.data_ptr() != output.data_ptr() else None
        source, address = None, 0
        if self.rank == opts.rootRank:
            source = only(input_lists, "scatter")
            _expect(len(source) == self.size, f"scatter takes {self.size} tensors, not {len(source)}")
            _expect_types(source, output)
            for each in source:
                _expect(each.numel() == output.numel(), f"{each.numel()} elements to scatter, but room for {output.numel()}")
            if not _side_by_side(source):
                source = torch.cat([in_memory(each).reshape(-1) for each in source])
                address = source.data_ptr()
            else:
                address = source[0].data_ptr()
        else:
            _expect(not input_lists, "scatter takes tensors only from its root")
        operation = moving(SCATTER, address, target.data_ptr(), target, opts.rootRank)
        return Prepared([operation], outputs, (source, target), finish)

    def barrier(self, opts):
        token = torch.zeros(1, dtype=torch.uint8)
        operation = (ALL_REDUCE, token.data_ptr(), token.data_ptr(), 1, _types.UINT8, _types.SUM, -1)
        return Prepared([operation], [token], token, name="barrier")
