// What figures of tests are compared with.
#pragma once

#include <limits>

namespace falcon::validate {

/// A figure that nobody measured.
inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
/// So many times slower than its peers is slow (Falcon, arXiv 2410.12588, section 4.3).
inline constexpr double slowFactor = 1.2;

}  // namespace falcon::validate
