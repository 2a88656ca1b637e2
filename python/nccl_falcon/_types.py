"""How PyTorch's element types and reductions are told to the library."""

import functools

import torch
from torch.distributed import ReduceOp

# Kinds of operations, as the module has them.
ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, SEND, RECEIVE = range(10)

# Numbers of ncclDataType_t.
INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT8E4M3, FLOAT8E5M2 = range(12)

# dtype: (the library's type, how many of it make one element)
_KNOWN = {
    torch.int8: (INT8, 1),
    torch.uint8: (UINT8, 1),
    torch.int32: (INT32, 1),
    torch.uint32: (UINT32, 1),
    torch.int64: (INT64, 1),
    torch.uint64: (UINT64, 1),
    torch.float16: (FLOAT16, 1),
    torch.float32: (FLOAT32, 1),
    torch.float64: (FLOAT64, 1),
    torch.bfloat16: (BFLOAT16, 1),
    torch.float8_e4m3fn: (FLOAT8E4M3, 1),
    torch.float8_e5m2: (FLOAT8E5M2, 1),
    torch.bool: (UINT8, 1),
    torch.complex32: (FLOAT16, 2),
    torch.complex64: (FLOAT32, 2),
    torch.complex128: (FLOAT64, 2),
}

# NCCL has no 16-bit integers: they are reduced as these, which hold what they can hold.
_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32}

SUM, PRODUCT, MAX, MIN, AVERAGE, SCALED_SUM, AND, OR, XOR = range(9)
_REDUCTIONS = {
    ReduceOp.RedOpType.SUM: SUM,
    ReduceOp.RedOpType.PRODUCT: PRODUCT,
    ReduceOp.RedOpType.MAX: MAX,
    ReduceOp.RedOpType.MIN: MIN,
    ReduceOp.RedOpType.AVG: AVERAGE,
    ReduceOp.RedOpType.PREMUL_SUM: SCALED_SUM,
    ReduceOp.RedOpType.BAND: AND,
    ReduceOp.RedOpType.BOR: OR,
    ReduceOp.RedOpType.BXOR: XOR,
}
# Of truth values, which lie in memory as 0 and 1.
_OF_BOOL = {SUM: MAX, OR: MAX, MAX: MAX, PRODUCT: MIN, AND: MIN, MIN: MIN, XOR: XOR}


def moved(dtype: torch.dtype) -> tuple[int, int]:
    """The type and factor of elements that are only moved: what the library does not know goes as bytes."""
    return _KNOWN.get(dtype) or (UINT8, dtype.itemsize)


def wider(dtype: torch.dtype) -> torch.dtype | None:
    """What elements are reduced as that the library cannot reduce themselves; None: it can, or they cannot be."""
    return _WIDER.get(dtype)


@functools.lru_cache(maxsize=256)
def _reduced(dtype: torch.dtype, kind) -> tuple[int, int, int]:
    reduction = _REDUCTIONS.get(kind)
    known = _KNOWN.get(dtype)
    if reduction is None or known is None:
        raise ValueError(f"falcon: {kind} of {dtype} cannot be computed; reduce as another type")
    if dtype == torch.bool:
        if reduction not in _OF_BOOL:
            raise ValueError(f"falcon: ReduceOp.{kind.name} of torch.bool has no meaning; reduce as torch.float32")
        reduction = _OF_BOOL[reduction]
    if dtype.is_complex and reduction not in (SUM, AVERAGE, SCALED_SUM):
        raise ValueError(f"falcon: ReduceOp.{kind.name} of {dtype} is not computed; sums and averages are")
    if reduction >= AND and (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"falcon: cannot use ReduceOp.{kind.name} with non-integral dtype {dtype}")
    return known[0], known[1], reduction


def reduced(dtype: torch.dtype, op: ReduceOp) -> tuple[int, int, int]:
    """The type, factor and reduction. Raises ValueError that names what cannot be computed."""
    return _reduced(dtype, op.op)


def scalar_of(op: ReduceOp, dtype: torch.dtype) -> bytes:
    """The factor of a PREMUL_SUM as one element of the type."""
    factor = op.__getstate__()[1]
    value = torch.as_tensor(factor).to(dtype.to_real() if dtype.is_complex else dtype).reshape(1)
    return bytes(value.view(torch.uint8).tolist())
