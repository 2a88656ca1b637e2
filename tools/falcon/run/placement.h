// Which rank goes where: pure functions of the numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "run/options.h"

namespace falcon::tools {

/// Where one rank lives.
struct RankPlacement {
  Rank rank = 0;
  int node = 0;
  int localRank = 0;
  int localSize = 1;
  std::vector<int> cores;  ///< to bind to; empty: not bound
  int place = 0;           ///< whose cgroup, interface and address it has: the rank's own number, or a spare's behind
};

/// Places of all ranks, in rank order. Nodes take ranks in blocks: rank r is on node r * nodes / ranks.
/// Bind::automatic shares `cores` out in equal slices where there are no more ranks than cores, and binds nothing else.
/// Bind::core gives every rank one core, in turn.
/// @param cores  those this process may use
/// A spare's place is on a node of its own, where there are nodes, and has cores of its own, where they are shared out.
/// @param places  of each rank; empty: its own
std::vector<RankPlacement> placeRanks(const RunOptions& options, const std::vector<int>& cores,
                                      std::span<const int> places = {});

/// All places, those of spares too, each as the rank of its number.
std::vector<RankPlacement> allPlaces(const RunOptions& options);

/// A place's interface and address among the nodes: "rank3", "10.211.0.13".
/// The same in every job, for its nodes' network is seen by nobody else.
std::string interfaceOf(int place);
std::string addressOf(int place);
inline constexpr int addressPrefixLength = 16;
inline constexpr const char* addressNetwork = "10.211.0.0/16";

}  // namespace falcon::tools
