// Numbers from a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <random>

namespace falcon::demo {

/// Own arithmetic on the engine's bits: the standard's distributions differ between libraries, a seed must not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) { bits_.discard(8); }
  int below(int n) { return static_cast<int>(bits_() % static_cast<std::uint64_t>(n)); }
  double between(double low, double high) { return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 bits_;
};

}  // namespace falcon::demo
