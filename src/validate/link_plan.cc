#include "validate/link_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "topology/binary_tree.h"
#include "topology/edge_colouring.h"
#include "topology/ring_passes.h"
#include "topology/tree_passes.h"

namespace falcon::validate {
namespace {

bool isPermutation(std::span<const Rank> ring) {
  std::vector<bool> seen(ring.size(), false);
  for (const Rank rank : ring) {
    if (rank < 0 || rank >= static_cast<Rank>(ring.size()) || seen[static_cast<std::size_t>(rank)]) return false;
    seen[static_cast<std::size_t>(rank)] = true;
  }
  return true;
}

/// Numbers for names; an empty name is one of its own for every rank.
class Names {
 public:
  int numberOf(const std::string& name, Rank rank) {
    return numbers_
        .try_emplace(name.empty() ? std::pair(rank, name) : std::pair(-1, name), static_cast<int>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<std::pair<Rank, std::string>, int> numbers_;
};

/// Links of one medium, by the number of the rank in `ranks`.
struct Coloured {
  std::vector<WaveLink> links;
  bool overSockets = false;
};

const RankPlace& placeOf(const std::map<Rank, RankPlace>& places, Rank rank) {
  static const RankPlace unknown;
  const auto found = places.find(rank);
  return found == places.end() ? unknown : found->second;
}

/// Splits links that may run together into parts that the hosts' cores carry. A link that alone needs more gets its
/// own.
std::vector<std::vector<WaveLink>> splitByCores(const std::vector<WaveLink>& links,
                                                const std::map<Rank, RankPlace>& places, int endsPerHost) {
  std::vector<std::vector<WaveLink>> parts;
  std::vector<std::map<int, int>> used;
  Names hosts;
  for (const WaveLink& link : links) {
    std::map<int, int> needs;
    for (const Rank rank : {link.link.from, link.link.to}) ++needs[hosts.numberOf(placeOf(places, rank).host, rank)];
    const auto fits = [&](const std::map<int, int>& taken) {
      return std::all_of(needs.begin(), needs.end(), [&](const auto& need) {
        const auto there = taken.find(need.first);
        return (there == taken.end() ? 0 : there->second) + need.second <= endsPerHost;
      });
    };
    const auto room = static_cast<std::size_t>(std::find_if(used.begin(), used.end(), fits) - used.begin());
    if (room == used.size()) {
      parts.emplace_back();
      used.emplace_back();
    }
    parts[room].push_back(link);
    for (const auto& [host, count] : needs) used[room][host] += count;
  }
  return parts;
}

void addWaves(const Coloured& medium, const std::map<Rank, RankPlace>& places, const LinkPlanOptions& options,
              transport::Lane lane, std::vector<Wave>& waves) {
  // Job ranks need not be dense; the colouring wants an index.
  std::map<Rank, int> index;
  for (const WaveLink& link : medium.links)
    for (const Rank rank : {link.link.from, link.link.to}) index.try_emplace(rank, static_cast<int>(index.size()));
  Names addresses;
  std::vector<int> resources(index.size());
  for (const auto& [rank, number] : index)
    resources[static_cast<std::size_t>(number)] =
        addresses.numberOf(medium.overSockets ? placeOf(places, rank).address : std::string(), rank);
  std::vector<Link> links;
  for (const WaveLink& link : medium.links) links.push_back({index[link.link.from], index[link.link.to]});

  for (const topology::Wave& together : topology::linkWaves(links, resources, 1)) {
    std::vector<WaveLink> chosen;
    for (const std::size_t i : together) chosen.push_back(medium.links[i]);
    for (auto& part : splitByCores(chosen, places, options.endsPerHost))
      waves.push_back({.lane = lane, .links = std::move(part)});
  }
}

}  // namespace

std::vector<WaveLink> linksOf(const TestedGroup& group, bool trees) {
  const std::size_t size = group.jobRanks.size();
  std::vector<Rank> ring = group.ring;
  if (ring.empty()) {
    ring.resize(size);
    std::iota(ring.begin(), ring.end(), 0);
  }
  if (size < 2 || ring.size() != size || !isPermutation(ring)) return {};

  std::vector<topology::Pass> passes = topology::ringPasses(ring);
  if (trees) {
    for (const auto tree : {&topology::firstTree, &topology::secondTree}) {
      std::vector<topology::TreeNode> nodes;
      for (Rank rank = 0; rank < static_cast<Rank>(size); ++rank) nodes.push_back(tree(rank, static_cast<int>(size)));
      for (auto& pass : topology::treePasses(nodes)) passes.push_back(std::move(pass));
    }
  }
  std::vector<WaveLink> links;
  std::set<Link> known;
  const auto job = [&](Rank rank) { return group.jobRanks[static_cast<std::size_t>(rank)]; };
  const auto add = [&](Rank from, Rank to) {
    // Without job ranks (members that nobody introduced) there is no one to name.
    if (job(from) < 0 || job(to) < 0 || job(from) == job(to) || !known.insert({from, to}).second) return;
    links.push_back({group.id, {job(from), job(to)}, from, to});
  };
  for (const auto& pass : passes) {
    for (const Link& link : pass) add(link.from, link.to);
    for (const Link& link : pass) add(link.to, link.from);
  }
  return links;
}

std::vector<Wave> planWaves(std::span<const WaveLink> links, const std::map<Rank, RankPlace>& places,
                            const LinkPlanOptions& options, transport::Lane lane, std::uint64_t firstRun) {
  Coloured memory, sockets{.links = {}, .overSockets = true};
  std::set<Link> known;
  for (const WaveLink& link : links) {
    if (!known.insert(link.link).second) continue;
    const std::string& node = placeOf(places, link.link.from).node;
    const bool shared = !node.empty() && node == placeOf(places, link.link.to).node;
    (shared ? memory : sockets).links.push_back(link);
  }
  std::vector<Wave> waves;
  // Sockets first: they are the usual suspects, in case the time runs out.
  addWaves(sockets, places, options, lane, waves);
  addWaves(memory, places, options, lane, waves);
  for (std::size_t i = 0; i < waves.size(); ++i) waves[i].run = firstRun + i;
  return waves;
}

std::vector<Wave> planLinkTests(std::span<const TestedGroup> groups, const std::map<Rank, RankPlace>& places,
                                const LinkPlanOptions& options, std::uint64_t firstRun) {
  std::vector<WaveLink> links;
  for (const TestedGroup& group : groups)
    for (const WaveLink& link : linksOf(group, options.trees)) links.push_back(link);
  return planWaves(links, places, options, transport::Lane::test, firstRun);
}

}  // namespace falcon::validate
