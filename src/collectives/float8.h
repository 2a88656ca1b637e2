// 8-bit floats to 32 bits and back as CUDA's types do it: round to nearest even, and what is too large (infinity too)
// becomes the largest number.
#pragma once

#include <bit>
#include <cstdint>

#include "collectives/half_float.h"

namespace falcon::collectives {

/// Sign, 4 bits of exponent, 3 of mantissa: up to 448; no infinity, one NaN.
constexpr float floatFromE4m3(std::uint8_t stored) {
  const std::uint32_t sign = static_cast<std::uint32_t>(stored & 0x80) << 24;
  const std::uint32_t magnitude = stored & 0x7f;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000);
  if (magnitude >= 0x08) return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
  // Subnormal: magnitude * 2^-9, exact in a float.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-9f));
}

/// Sign, 5 bits of exponent, 2 of mantissa: the upper half of an f16.
constexpr float floatFromE5m2(std::uint8_t stored) {
  return floatFromHalf(static_cast<std::uint16_t>(stored << 8));
}

/// How an 8-bit float differs from a float.
struct Float8Format {
  int dropped;               ///< bits of mantissa that a float has more
  std::uint32_t biasOffset;  ///< difference of the exponents' biases
  std::uint32_t least;       ///< the smallest normal number, as a float's bits
  std::uint32_t most;        ///< the largest number, the same
  float subnormalAnchor;     ///< a float whose last bit is worth the smallest subnormal
  std::uint8_t greatest;     ///< its encoding, without the sign
};
inline constexpr Float8Format e4m3Format{20, 120, 0x3c800000, 0x43e00000, 0x1p14f, 0x7e};
inline constexpr Float8Format e5m2Format{21, 112, 0x38800000, 0x47600000, 0x1p7f, 0x7b};

constexpr std::uint8_t float8FromFloat(float value, const Float8Format& format) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7f;  // a NaN has no sign
  if (magnitude >= format.most) return static_cast<std::uint8_t>(sign | format.greatest);
  if (magnitude < format.least) {
    // The addition rounds, and leaves the subnormal in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + format.subnormalAnchor;
    return static_cast<std::uint8_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(format.subnormalAnchor)));
  }
  const std::uint32_t half = (1u << (format.dropped - 1)) - 1;
  const std::uint32_t rounded = magnitude + half + ((magnitude >> format.dropped) & 1);
  return static_cast<std::uint8_t>(sign | ((rounded - (format.biasOffset << 23)) >> format.dropped));
}

constexpr std::uint8_t e4m3FromFloat(float value) {
  return float8FromFloat(value, e4m3Format);
}
constexpr std::uint8_t e5m2FromFloat(float value) {
  return float8FromFloat(value, e5m2Format);
}

}  // namespace falcon::collectives
