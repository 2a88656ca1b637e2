// Element-wise reductions.
#pragma once

#include <cstddef>

#include "base/data_type.h"

namespace falcon::collectives {

/// result[i] = one[i] op two[i]. `result` may be `one` or `two`, but not overlap them otherwise. Any alignment.
using CombineKernel = void (*)(std::byte* result, const std::byte* one, const std::byte* two, std::size_t count);
/// values[i] /= divisor, in place. Any alignment. Integers drop the fraction.
using DivideKernel = void (*)(std::byte* values, std::size_t count, int divisor);

/// Which code the kernels are compiled for. All give the same results, but for the payloads of NaNs.
enum class KernelSet { portable, avx2 };
KernelSet bestKernelSet();

/// Integers wrap. f16 and bf16 go through f32 and are rounded after each step. max and min of floats ignore a NaN
/// beside a number, as fmax does. avg combines like sum. Null for the f8 types, which are not supported.
CombineKernel combineKernel(DataType type, ReduceOp op, KernelSet set = bestKernelSet());
/// Null for the f8 types.
DivideKernel divideKernel(DataType type, KernelSet set = bestKernelSet());

}  // namespace falcon::collectives
