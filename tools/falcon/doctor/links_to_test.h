// Which links are tested before a job. Pure.
#pragma once

#include <vector>

#include "validate/link_plan.h"

namespace falcon::doctor {

/// Up to so many nodes every pair is tested, beyond only neighbours in rank order: the number of tests stays linear.
inline constexpr std::size_t mostNodesInPairs = 16;

/// Both directions of every pair of ranks in a node, and of pairs of network addresses between nodes: the first address
/// of a node with the first of another and so on, one rank for each address.
std::vector<Link> linksToTest(const std::vector<validate::RankSite>& sites);

}  // namespace falcon::doctor
