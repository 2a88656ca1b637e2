#include "run/placement.h"

#include "base/format.h"

namespace falcon::tools {
namespace {

std::vector<int> coresOf(const RunOptions& options, Rank rank, const std::vector<int>& cores) {
  const int count = static_cast<int>(cores.size());
  if (options.bind == Bind::none || count == 0) return {};
  if (options.bind == Bind::core) return {cores[static_cast<size_t>(rank % count)]};
  if (options.ranks > count) return {};
  return {cores.begin() + rank * count / options.ranks, cores.begin() + (rank + 1) * count / options.ranks};
}

}  // namespace

std::vector<RankPlacement> placeRanks(const RunOptions& options, const std::vector<int>& cores) {
  const int nodes = options.nodes > 0 ? options.nodes : 1;
  std::vector<int> members(static_cast<size_t>(nodes), 0);
  std::vector<RankPlacement> places;
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    const int node = static_cast<int>(static_cast<long>(rank) * nodes / options.ranks);
    places.push_back({rank, node, members[static_cast<size_t>(node)]++, 0, coresOf(options, rank, cores)});
  }
  for (auto& place : places) place.localSize = members[static_cast<size_t>(place.node)];
  return places;
}

std::string interfaceOf(Rank rank) {
  return fmt::format("rank{}", rank);
}

// 200 addresses a third byte, from .10 on: neither .0 nor .255 nor the customary gateways.
std::string addressOf(Rank rank) {
  return fmt::format("10.211.{}.{}", rank / 200, 10 + rank % 200);
}

}  // namespace falcon::tools
