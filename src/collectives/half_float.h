// 16-bit floats to 32 bits and back, round to nearest even, without help from the processor.
#pragma once

#include <bit>
#include <cstdint>

namespace falcon::collectives {

constexpr float floatFromHalf(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity, or NaN made quiet as F16C does
    const std::uint32_t quiet = magnitude > 0x7c00 ? 0x00400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude << 13) | quiet);
  }
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: magnitude * 2^-24, exact in a float.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

constexpr std::uint16_t halfFromFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x01ff));
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // from 65520 on
  if (magnitude < 0x38800000) {
    // Below 2^-14: adding 0.5 leaves the half's subnormal in the low bits, rounded by the addition itself.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0x0fff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

constexpr float floatFromBrain(std::uint16_t brain) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(brain) << 16);
}

constexpr std::uint16_t brainFromFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quietNan = (bits >> 16) | 0x0040;
  // As a choice of values, not a branch: so that the loop vectorises.
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quietNan : rounded);
}

}  // namespace falcon::collectives
