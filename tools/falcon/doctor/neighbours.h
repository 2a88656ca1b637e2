// The file that tells who sits under one switch. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "validate/link_plan.h"

namespace falcon::doctor {

/// Ranks under one switch.
struct Neighbours {
  std::string name;  ///< as the file says before the colon, or "line 3"
  std::vector<Rank> ranks;
};

/// A line is a switch: `name: who who ...`, the name and its colon may be missing. Who is a rank's number, or a host's
/// or a node's name or an address, which stand for all ranks there. # begins a comment. A rank is in one group at most.
/// Errors name the line.
Result<std::vector<Neighbours>> parseNeighbours(const std::string& text, const std::vector<validate::RankSite>& sites);

}  // namespace falcon::doctor
