// What every rank brings, and whether what a rank got is right: element by element, one rank after the other.
#pragma once

#include <string>
#include <vector>

#include "call_spec.h"

namespace falcon::property {

/// Element `index` of what `rank` sends.
std::uint64_t inputBits(const CallSpec& call, int rank, std::size_t index);
/// What `rank` multiplies its input by in a preMulSum.
std::uint64_t scalarBits(const CallSpec& call, int rank);

/// Compares `rank`'s received elements with the inputs of all; "" where they are right. Integers are exact modulo
/// 2^bits, and an average of them drops the fraction of the wrapped sum. Floats may be off by n - 1 roundings of the
/// type on the sum of magnitudes (n for preMulSum, n + 1 for avg), not at all where every partial sum is exact. What is
/// only moved keeps every bit.
std::string wrongIn(const std::byte* received, const CallSpec& call, int rank, int ranks);

}  // namespace falcon::property
