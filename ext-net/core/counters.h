// What counters tell between two readings.
#pragma once

#include <algorithm>
#include <cstdint>

namespace falcon::net {

/// Counters of the kernel's never fall, but a reading can fail and be 0.
inline double grown(std::uint64_t now, std::uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

/// 0 to 1; 0 of nothing.
inline double ratio(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

}  // namespace falcon::net
