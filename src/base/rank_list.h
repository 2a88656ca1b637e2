// Ranks as people read them.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace falcon {

/// "0, 2, 4"
inline std::string listOf(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace falcon
