// Ranks in a list, and as people read them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/types.h"

namespace falcon {

inline bool contains(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// "0, 2, 4"
inline std::string listOf(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace falcon
