// Which order of the nodes the planner takes, what roles follow from it, and both in words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rebalance/planner.h"

namespace falcon::rebalance {

/// Moving work for less than this share of the computing time is not worth other shapes and sums.
inline constexpr double leastGain = 0.03;

struct NodeOrder {
  std::optional<NodePermutation> order;  ///< nothing: none is clearly better than it is
  std::string obstacle;                  ///< then, whose memory is too little for one that would be; "": nobody's
};
/// The order of the nodes under which what is slow costs least.
NodeOrder nodeOrderFor(const JobFacts& job, std::span<const Culprit> culprits);

/// By job rank, the roles when the nodes have that order; empty where roles cannot be exchanged.
std::vector<int> rolesAfter(const JobFacts& job, const NodePermutation& order);
/// Whose memory is too little for the role that it takes; "": nobody's, as far as is known.
/// @param roles  by job rank
std::string lackOfMemory(const JobFacts& job, std::span<const int> roles);

/// "ranks 0 and 1, 2 and 3 exchange their roles", or "ranks take others' roles: 0 that of 2, ...".
std::string inWords(std::span<const int> before, std::span<const int> after);
/// "swap nodes 0 and 2", "nodes take others' places: 0 that of 2, 2 that of 5, 5 that of 0".
std::string inWords(const NodePermutation& order);

std::vector<Rank> slowRanksOf(std::span<const Culprit> culprits);

}  // namespace falcon::rebalance
