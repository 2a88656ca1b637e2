// Element-wise reductions.
#pragma once

#include <cstddef>

#include "base/data_type.h"

namespace falcon::collectives {

/// result[i] = one[i] op two[i]. `result` may be `one` or `two`, but not overlap them otherwise. Any alignment.
using CombineKernel = void (*)(std::byte* result, const std::byte* one, const std::byte* two, std::size_t count);
/// result[i] = values[i] * scalar. `result` may be `values`, but not overlap it otherwise. Any alignment.
using ScaleKernel = void (*)(std::byte* result, const std::byte* values, const std::byte* scalar, std::size_t count);
/// values[i] /= divisor, in place. Any alignment. Integers drop the fraction.
using DivideKernel = void (*)(std::byte* values, std::size_t count, int divisor);

/// Which code the kernels are compiled for. All give the same results, but for the payloads of NaNs.
enum class KernelSet { portable, avx2 };
KernelSet bestKernelSet();

/// Integers wrap. 16-bit and 8-bit floats go through f32 and are rounded after each step; 8-bit ones stop at their
/// largest number (see float8.h). max and min of floats ignore a NaN beside a number, as fmax does. avg and preMulSum
/// combine like sum. The bitwise ones are null but for integers.
CombineKernel combineKernel(DataType type, ReduceOp op, KernelSet set = bestKernelSet());
DivideKernel divideKernel(DataType type, KernelSet set = bestKernelSet());
/// What preMulSum does to each input before the sums.
ScaleKernel scaleKernel(DataType type, KernelSet set = bestKernelSet());

}  // namespace falcon::collectives
