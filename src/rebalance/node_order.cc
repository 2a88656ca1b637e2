#include "rebalance/node_order.h"

#include <algorithm>

#include "base/format.h"

namespace falcon::rebalance {
namespace {

/// Of the layout, that the rank has; -1: it is not known.
int placeOf(const JobFacts& job, Rank rank) {
  const auto place = std::find(job.rankAt.begin(), job.rankAt.end(), rank);
  return place == job.rankAt.end() ? -1 : static_cast<int>(place - job.rankAt.begin());
}

PlacementFacts placementFactsOf(const JobFacts& job, std::span<const Culprit> culprits) {
  PlacementFacts facts{.layout = *job.layout,
                       .nodeOfPlace = job.nodeOfPlace,
                       .volumes = job.volumes,
                       .stageSeconds = job.stageSeconds,
                       .microBatches = std::max(1, job.microBatches / job.layout->dataSize),
                       .timesAsLong = std::vector<double>(job.nodeOfPlace.size(), 1)};
  for (const Rank rank : job.rankAt)
    if (!job.railOfRank.empty()) facts.railOfPlace.push_back(job.railOfRank[static_cast<std::size_t>(rank)]);
  for (const Rank rank : slowRanksOf(culprits))
    if (const auto known = job.timesAsLong.find(rank); known != job.timesAsLong.end() && placeOf(job, rank) >= 0)
      facts.timesAsLong[static_cast<std::size_t>(placeOf(job, rank))] = std::max(1.0, known->second);
  for (const Culprit& culprit : culprits) {
    if (culprit.kind != CulpritKind::link || placeOf(job, culprit.link.from) < 0 || placeOf(job, culprit.link.to) < 0)
      continue;
    const auto node = [&](Rank rank) { return job.nodeOfPlace[static_cast<std::size_t>(placeOf(job, rank))]; };
    const int from = node(culprit.link.from), to = node(culprit.link.to);
    if (from == to) continue;  // no order of the nodes takes ranks of a node apart
    facts.slowLinks.push_back({from, to});
    if (culprit.bothWays) facts.slowLinks.push_back({to, from});
  }
  return facts;
}

/// Where ranks exchange roles the state of both is there for a while. A restart at other places frees the old one
/// first.
void addMemoryOfPlaces(const JobFacts& job, PlacementFacts& facts) {
  if (job.memoryOfRole.empty() || job.roles.empty() || !job.swapSeconds || job.deterministic) return;
  for (const Rank rank : job.rankAt) {
    facts.memoryOfRank.push_back(job.memoryLeft[static_cast<std::size_t>(rank)]);
    facts.memoryOfPlace.push_back(
        job.memoryOfRole[static_cast<std::size_t>(job.roles[static_cast<std::size_t>(rank)])]);
  }
}

/// Nothing where no order is clearly better than it is.
std::optional<NodePermutation> betterOrder(const PlacementFacts& facts) {
  auto found = permuteNodes(facts);
  if (!found || found->moves.empty()) return std::nullopt;
  const bool relieves = found->slowBytesAfter < found->slowBytesBefore;
  const bool faster = found->after.seconds < found->before.seconds * (1 - leastGain);
  if (!relieves && !faster) return std::nullopt;
  return std::move(*found);
}

}  // namespace

NodeOrder nodeOrderFor(const JobFacts& job, std::span<const Culprit> culprits) {
  if (!job.layout || job.nodeOfPlace.size() != static_cast<std::size_t>(job.layout->size())) return {};
  PlacementFacts facts = placementFactsOf(job, culprits);
  addMemoryOfPlaces(job, facts);
  if (auto order = betterOrder(facts)) return {std::move(order), {}};
  if (facts.memoryOfRank.empty()) return {};
  facts.memoryOfRank.clear();
  facts.memoryOfPlace.clear();
  const auto order = betterOrder(facts);
  if (!order) return {};
  const std::vector<int> roles = rolesAfter(job, *order);
  const std::string lack = lackOfMemory(job, roles);
  // A search that does not look at every order may have missed this one, which is nobody's fault.
  if (lack.empty()) return {};
  return {{}, fmt::format("memory is too little for a better order ({}): {}", inWords(job.roles, roles), lack)};
}

std::vector<int> rolesAfter(const JobFacts& job, const NodePermutation& order) {
  if (job.roles.empty()) return {};
  std::vector<int> roles = job.roles;
  const std::vector<Rank> places = placesAfter(job.nodeOfPlace, order);
  for (std::size_t place = 0; place < places.size(); ++place) {
    const Rank before = job.rankAt[static_cast<std::size_t>(places[place])];  // who has what this one takes
    roles[static_cast<std::size_t>(job.rankAt[place])] = job.roles[static_cast<std::size_t>(before)];
  }
  return roles;
}

std::string lackOfMemory(const JobFacts& job, std::span<const int> roles) {
  std::string lack;
  int others = 0;
  for (std::size_t rank = 0; rank < roles.size() && rank < job.memoryLeft.size(); ++rank) {
    const auto role = static_cast<std::size_t>(roles[rank]);
    if (roles[rank] == job.roles[rank] || role >= job.memoryOfRole.size()) continue;
    if (job.memoryLeft[rank] >= job.memoryOfRole[role]) continue;
    if (lack.empty())
      lack = fmt::format("rank {} has {:.0f} MB left, and role {} takes {:.0f} MB", rank, job.memoryLeft[rank] / 1e6,
                         role, job.memoryOfRole[role] / 1e6);
    else
      ++others;
  }
  if (others > 0) lack += fmt::format("; so it is with {} more", others);
  return lack;
}

std::string inWords(std::span<const int> before, std::span<const int> after) {
  std::string pairs, others;
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    if (before[rank] == after[rank]) continue;
    const auto from = static_cast<std::size_t>(std::find(before.begin(), before.end(), after[rank]) - before.begin());
    if (after[from] != before[rank])
      others += fmt::format("{}{} that of {}", others.empty() ? "" : ", ", rank, from);
    else if (rank < from)
      pairs += fmt::format("{}{} and {}", pairs.empty() ? "" : ", ", rank, from);
  }
  if (!others.empty()) others = "ranks take others' roles: " + others;
  if (!pairs.empty()) pairs = "ranks " + pairs + " exchange their roles";
  return pairs + (pairs.empty() || others.empty() ? "" : "; ") + others;
}

std::string inWords(const NodePermutation& order) {
  if (order.moves.size() == 2) return fmt::format("swap nodes {} and {}", order.moves[0].first, order.moves[1].first);
  std::string text;
  for (const auto& [node, other] : order.moves)
    text += fmt::format("{}{} that of {}", text.empty() ? "nodes take others' places: " : ", ", node, other);
  return text;
}

std::vector<Rank> slowRanksOf(std::span<const Culprit> culprits) {
  std::vector<Rank> ranks;
  for (const Culprit& culprit : culprits)
    if (culprit.kind == CulpritKind::rank) ranks.push_back(culprit.rank);
  return ranks;
}

}  // namespace falcon::rebalance
