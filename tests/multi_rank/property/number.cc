#include "number.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace falcon::property {
namespace {

// In the order of ncclDataType_t.
constexpr TypeFacts facts[typeCount] = {
    {"int8", 1, false, true, 0, 0},    {"uint8", 1, false, false, 0, 0},    {"int32", 4, false, true, 0, 0},
    {"uint32", 4, false, false, 0, 0}, {"int64", 8, false, true, 0, 0},     {"uint64", 8, false, false, 0, 0},
    {"float16", 2, true, true, 10, 5}, {"float32", 4, true, true, 23, 8},   {"float64", 8, true, true, 52, 11},
    {"bfloat16", 2, true, true, 7, 8}, {"float8e4m3", 1, true, true, 3, 4}, {"float8e5m2", 1, true, true, 2, 5},
};

int biasOf(const TypeFacts& type) {
  return (1 << (type.exponentBits - 1)) - 1;
}

Real computeValue(std::uint64_t bits, const TypeFacts& type) {
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << type.mantissaBits) - 1);
  const int exponent = static_cast<int>(bits >> type.mantissaBits) & ((1 << type.exponentBits) - 1);
  const bool negative = (bits >> (type.mantissaBits + type.exponentBits)) & 1;
  const bool e4m3 = type.mantissaBits == 3;  // the only one without infinities: just one NaN
  const bool topExponent = exponent == (1 << type.exponentBits) - 1;
  Real magnitude;
  if (topExponent && e4m3 && mantissa == 7)
    magnitude = std::numeric_limits<Real>::quiet_NaN();
  else if (topExponent && !e4m3)
    magnitude = mantissa ? std::numeric_limits<Real>::quiet_NaN() : std::numeric_limits<Real>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<Real>(mantissa), 1 - biasOf(type) - type.mantissaBits);
  else
    magnitude = std::ldexp(static_cast<Real>(mantissa | std::uint64_t{1} << type.mantissaBits),
                           exponent - biasOf(type) - type.mantissaBits);
  return negative ? -magnitude : magnitude;
}

std::vector<Real> tableOf(const TypeFacts& type) {
  std::vector<Real> values(std::size_t{1} << (8 * type.bytes));
  for (std::size_t bits = 0; bits < values.size(); ++bits) values[bits] = computeValue(bits, type);
  return values;
}

}  // namespace

const TypeFacts& factsOf(ncclDataType_t type) {
  return facts[type];
}

Real valueOf(std::uint64_t bits, const TypeFacts& type) {
  // The short ones are looked up, the long ones are the processor's own.
  if (type.bytes == 8) return std::bit_cast<double>(bits);
  if (type.bytes == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  static const std::vector<Real> tables[] = {tableOf(facts[ncclFloat16]), tableOf(facts[ncclBfloat16]),
                                             tableOf(facts[ncclFloat8e4m3]), tableOf(facts[ncclFloat8e5m2])};
  return tables[(type.bytes == 1 ? 2 : 0) + (&type == &facts[ncclBfloat16] || &type == &facts[ncclFloat8e5m2])][bits];
}

std::int64_t signExtended(std::uint64_t bits, const TypeFacts& type) {
  const int unused = 64 - 8 * type.bytes;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::uint64_t encodeFloat(bool negative, int exponent, std::uint64_t mantissa, const TypeFacts& type) {
  int stored = exponent + biasOf(type);
  mantissa &= (std::uint64_t{1} << type.mantissaBits) - 1;
  if (stored < 1) stored = 0;
  return mantissa | static_cast<std::uint64_t>(stored) << type.mantissaBits |
         static_cast<std::uint64_t>(negative) << (type.mantissaBits + type.exponentBits);
}

std::uint64_t encodeWhole(int value, const TypeFacts& type) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  int exponent = 0;
  while (magnitude >> (exponent + 1)) ++exponent;
  const int shift = type.mantissaBits - exponent;
  return encodeFloat(value < 0, exponent, shift >= 0 ? magnitude << shift : magnitude >> -shift, type);
}

Real roundingOf(const TypeFacts& type) {
  return std::ldexp(Real{1}, -type.mantissaBits - 1);
}

Real smallestOf(const TypeFacts& type) {
  return std::ldexp(Real{1}, 1 - biasOf(type) - type.mantissaBits);
}

}  // namespace falcon::property
