// The element types, bit by bit: what a pattern means, and patterns with a meaning. Written for the tests alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nccl.h"

namespace falcon::property {

/// Has at least as many bits of mantissa as any element type, and eleven more on x86.
using Real = long double;

struct TypeFacts {
  const char* name;
  int bytes;
  bool isFloat;
  bool isSigned;
  int mantissaBits;  ///< stored ones, of a float
  int exponentBits;
};
const TypeFacts& factsOf(ncclDataType_t type);
inline constexpr int typeCount = 12;

inline std::uint64_t loadBits(const std::byte* from, int bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, bytes);
  return bits;
}
inline void storeBits(std::byte* to, std::uint64_t bits, int bytes) {
  std::memcpy(to, &bits, bytes);
}

/// Of a float; infinities and NaN where the type has them.
Real valueOf(std::uint64_t bits, const TypeFacts& facts);
/// Of an integer, sign and all.
std::int64_t signExtended(std::uint64_t bits, const TypeFacts& facts);
/// A whole number that the float type holds exactly.
std::uint64_t encodeWhole(int value, const TypeFacts& facts);
/// +-1.m * 2^exponent; an exponent below the type's gives a subnormal.
std::uint64_t encodeFloat(bool negative, int exponent, std::uint64_t mantissa, const TypeFacts& facts);
/// Half the distance between 1 and the next number: the largest relative error of one rounding.
Real roundingOf(const TypeFacts& facts);
/// The smallest number above zero.
Real smallestOf(const TypeFacts& facts);

}  // namespace falcon::property
