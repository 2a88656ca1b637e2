#include "run/placement.h"

#include "base/format.h"

namespace falcon::tools {
namespace {

std::vector<int> coresOf(const RunOptions& options, int place, const std::vector<int>& cores) {
  const int count = static_cast<int>(cores.size()), places = options.ranks + options.spares;
  if (options.bind == Bind::none || count == 0) return {};
  if (options.bind == Bind::core) return {cores[static_cast<size_t>(place % count)]};
  if (places > count) return {};
  return {cores.begin() + place * count / places, cores.begin() + (place + 1) * count / places};
}

int nodeOf(const RunOptions& options, int place) {
  if (options.nodes == 0) return 0;
  if (place >= options.ranks) return options.nodes + place - options.ranks;
  return static_cast<int>(static_cast<long>(place) * options.nodes / options.ranks);
}

}  // namespace

std::vector<RankPlacement> placeRanks(const RunOptions& options, const std::vector<int>& cores,
                                      std::span<const int> places) {
  std::vector<int> members(static_cast<size_t>(options.nodes + options.spares + 1), 0);
  std::vector<RankPlacement> placed;
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    const int place = places.empty() ? rank : places[static_cast<size_t>(rank)];
    const int node = nodeOf(options, place);
    placed.push_back({rank, node, members[static_cast<size_t>(node)]++, 0, coresOf(options, place, cores), place});
  }
  for (auto& each : placed) each.localSize = members[static_cast<size_t>(each.node)];
  return placed;
}

std::vector<RankPlacement> allPlaces(const RunOptions& options) {
  std::vector<RankPlacement> all;
  for (int place = 0; place < options.ranks + options.spares; ++place)
    all.push_back({place, nodeOf(options, place), 0, 1, {}, place});
  return all;
}

std::string interfaceOf(int place) {
  return fmt::format("rank{}", place);
}

// 200 addresses a third byte, from .10 on: neither .0 nor .255 nor the customary gateways.
std::string addressOf(int place) {
  return fmt::format("10.211.{}.{}", place / 200, 10 + place % 200);
}

}  // namespace falcon::tools
