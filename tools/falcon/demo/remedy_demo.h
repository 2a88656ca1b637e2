// What the demos of a restart and of an exchange of roles have in common.
#pragma once

namespace falcon::demo {

inline constexpr int ranks = 4;
inline constexpr double healthyFor = 15;           ///< s after the baseline, so that there is something to compare with
inline constexpr double longest = 300;             ///< s, until the remedy has been seen or was not
inline constexpr double longestUndisturbed = 120;  ///< s

}  // namespace falcon::demo
