"""What ranks bring to collectives, the same wherever it is computed."""

import torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]
ALL = [*FLOATS, *INTEGERS, *COMPLEX, *FLOAT8, torch.bool]

# No elements, one, odd numbers of them, no dimensions, and enough for the ways of long calls.
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (129, 65), (70_000,)]


def value(rank: int, shape, dtype, seed: int = 0):
    """Small whole numbers: sums of a few ranks are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(torch.bool)
    low = 0 if dtype == torch.uint8 else -2
    whole = torch.randint(low, 3, shape, generator=generator)
    if dtype.is_complex:
        return torch.complex(whole.to(torch.float64), whole.flip(0).to(torch.float64) if whole.dim() else whole.double()).to(dtype)
    return whole.to(dtype)


def plain(tensor):
    """For comparisons, which 8-bit floats lack."""
    return tensor.to(torch.float32) if tensor.dtype in FLOAT8 else tensor


def check_equal(got, wanted, what):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (what, got.dtype, wanted.dtype, got.shape)
    if not torch.equal(plain(got), plain(wanted)):
        raise AssertionError(f"{what}: got {plain(got).flatten()[:8]}, not {plain(wanted).flatten()[:8]}")


def stretched(tensor):
    """The same values in memory with gaps."""
    if tensor.dim() == 0:
        return torch.stack([tensor, tensor])[0]
    wide = torch.empty((*tensor.shape, 2), dtype=tensor.dtype)
    view = wide.select(-1, 1)
    view.copy_(tensor)
    return view
