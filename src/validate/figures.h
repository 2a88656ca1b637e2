// A figure that nobody measured.
#pragma once

#include <limits>

namespace falcon::validate {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace falcon::validate
