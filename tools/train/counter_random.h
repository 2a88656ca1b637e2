// Random numbers without state: the value at an index depends on keys only, so any rank can draw any part of a tensor.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace falcon::train {

/// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA'14): every output bit depends on every input bit.
inline std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// A key made of several.
template <class... Keys>
std::uint64_t keyOf(std::uint64_t first, Keys... rest) {
  std::uint64_t key = scramble(first);
  ((key = scramble(key ^ static_cast<std::uint64_t>(rest))), ...);
  return key;
}

/// In [0, 1).
inline double uniform(std::uint64_t key) {
  return static_cast<double>(scramble(key) >> 11) * 0x1p-53;
}

/// Mean 0, deviation 1 (Box and Muller).
inline double normal(std::uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(key)));
  return radius * std::cos(2 * std::numbers::pi * uniform(key ^ 0x5bd1e9955bd1e995u));
}

}  // namespace falcon::train
