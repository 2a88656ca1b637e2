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

const RankSite& siteOf(const std::map<Rank, RankSite>& sites, Rank rank) {
  static const RankSite unknown;
  const auto found = sites.find(rank);
  return found == sites.end() ? unknown : found->second;
}

/// Between two addresses one pair of ranks tells of all, each way. Where both ends have the same address, or none is
/// known, ranks are all that tells links apart.
std::vector<WaveLink> oneOfEachAddressPair(const std::vector<WaveLink>& links, const std::map<Rank, RankSite>& sites) {
  constexpr std::size_t enoughToCompare = 4;
  using Way = std::pair<std::string, std::string>;
  const auto reversed = [](const Link& link) { return Link{link.to, link.from}; };
  std::set<Link> offered;
  for (const WaveLink& link : links) offered.insert(link.link);
  std::map<Way, Link> chosen;
  std::vector<WaveLink> kept;
  for (const WaveLink& link : links) {
    const Way way{siteOf(sites, link.link.from).address, siteOf(sites, link.link.to).address};
    if (way.first != way.second && !way.first.empty() && !way.second.empty()) {
      // The way back is tested by the same ranks, so that a link that is slow both ways is one.
      const auto back = chosen.find({way.second, way.first});
      const bool othersGoBack =
          back != chosen.end() && back->second != reversed(link.link) && offered.contains(reversed(back->second));
      if (othersGoBack || !chosen.emplace(way, link.link).second) continue;
    }
    kept.push_back(link);
  }
  return kept.size() >= enoughToCompare ? kept : links;
}

void addPasses(const std::vector<WaveLink>& links, bool overSockets, const std::map<Rank, RankSite>& sites,
               std::vector<LinkPass>& passes) {
  // Job ranks need not be dense; the colouring wants an index.
  std::map<Rank, int> index;
  for (const WaveLink& link : links)
    for (const Rank rank : {link.link.from, link.link.to}) index.try_emplace(rank, static_cast<int>(index.size()));
  Names addresses;
  std::vector<int> resources(index.size());
  for (const auto& [rank, number] : index)
    resources[static_cast<std::size_t>(number)] =
        addresses.numberOf(overSockets ? siteOf(sites, rank).address : std::string(), rank);
  // Both directions of a pair are coloured as one and then run one after the other: a quarter of the work, and no more
  // passes, for pairs are mostly tested both ways.
  std::vector<Link> pairs;
  std::vector<std::vector<WaveLink>> directions;
  std::map<Link, std::size_t> pairOf;
  for (const WaveLink& link : links) {
    const int from = index[link.link.from], to = index[link.link.to];
    const auto [at, first] = pairOf.try_emplace({std::min(from, to), std::max(from, to)}, pairs.size());
    if (first) {
      pairs.push_back({from, to});
      directions.emplace_back();
    }
    directions[at->second].push_back(link);
  }
  for (const topology::Wave& together : topology::linkWaves(pairs, resources, 1)) {
    LinkPass one{.overSockets = overSockets, .links = {}};
    LinkPass other{.overSockets = overSockets, .links = {}};
    for (const std::size_t pair : together) {
      one.links.push_back(directions[pair].front());
      if (directions[pair].size() > 1) other.links.push_back(directions[pair].back());
    }
    passes.push_back(std::move(one));
    if (!other.links.empty()) passes.push_back(std::move(other));
  }
}

}  // namespace

std::vector<WaveLink> linksOf(const TestedGroup& group) {
  const std::size_t size = group.jobRanks.size();
  std::vector<Rank> ring = group.ring;
  if (ring.empty()) {
    ring.resize(size);
    std::iota(ring.begin(), ring.end(), 0);
  }
  if (size < 2 || ring.size() != size || !isPermutation(ring)) return {};

  std::vector<topology::Pass> passes = topology::ringPasses(ring);
  const auto trees = {&topology::firstTree, &topology::secondTree};
  for (auto tree = trees.begin(); tree != trees.end() && tree - trees.begin() < group.trees; ++tree) {
    std::vector<topology::TreeNode> nodes;
    for (Rank rank = 0; rank < static_cast<Rank>(size); ++rank) nodes.push_back((*tree)(rank, static_cast<int>(size)));
    for (auto& pass : topology::treePasses(nodes)) passes.push_back(std::move(pass));
  }
  passes.push_back(group.pairs);
  std::vector<WaveLink> links;
  std::set<Link> known;
  const auto isMember = [&](Rank rank) { return rank >= 0 && rank < static_cast<Rank>(size); };
  const auto job = [&](Rank rank) { return group.jobRanks[static_cast<std::size_t>(rank)]; };
  const auto add = [&](Rank from, Rank to) {
    // Without job ranks (members that nobody introduced) there is no one to name.
    if (!isMember(from) || !isMember(to) || job(from) < 0 || job(to) < 0 || job(from) == job(to)) return;
    if (known.insert({from, to}).second) links.push_back({group.id, {job(from), job(to)}, from, to});
  };
  for (const auto& pass : passes) {
    for (const Link& link : pass) add(link.from, link.to);
    for (const Link& link : pass) add(link.to, link.from);
  }
  return links;
}

std::vector<LinkPass> passesOf(std::span<const WaveLink> links, const std::map<Rank, RankSite>& sites) {
  std::vector<WaveLink> memory, sockets;
  std::set<Link> known;
  for (const WaveLink& link : links) {
    if (!known.insert(link.link).second) continue;
    const std::string& node = siteOf(sites, link.link.from).node;
    const bool shared = !node.empty() && node == siteOf(sites, link.link.to).node;
    (shared ? memory : sockets).push_back(link);
  }
  std::vector<LinkPass> passes;
  // Sockets first: they are the usual suspects, in case the time runs out.
  addPasses(oneOfEachAddressPair(sockets, sites), true, sites, passes);
  addPasses(memory, false, sites, passes);
  return passes;
}

std::vector<WaveLink> takeWave(std::vector<WaveLink>& links, const std::map<Rank, RankSite>& sites, int endsPerHost) {
  std::vector<WaveLink> taken, rest;
  std::map<int, int> used;
  Names hosts;
  for (const WaveLink& link : links) {
    std::map<int, int> needs;
    for (const Rank rank : {link.link.from, link.link.to}) ++needs[hosts.numberOf(siteOf(sites, rank).host, rank)];
    const bool fits = taken.empty() || std::all_of(needs.begin(), needs.end(), [&](const auto& need) {
                        return used[need.first] + need.second <= endsPerHost;
                      });
    (fits ? taken : rest).push_back(link);
    for (const auto& [host, count] : needs) used[host] += fits ? count : 0;
  }
  links = std::move(rest);
  return taken;
}

std::vector<Wave> planWaves(std::span<const WaveLink> links, const std::map<Rank, RankSite>& sites,
                            const LinkPlanOptions& options, transport::Lane lane, std::uint64_t firstRun) {
  std::vector<Wave> waves;
  for (LinkPass& pass : passesOf(links, sites))
    while (!pass.links.empty())
      waves.push_back({.run = firstRun++, .lane = lane, .links = takeWave(pass.links, sites, options.endsPerHost)});
  return waves;
}

std::vector<WaveLink> linksOf(std::span<const TestedGroup> groups) {
  std::vector<WaveLink> links;
  for (const TestedGroup& group : groups)
    for (const WaveLink& link : linksOf(group)) links.push_back(link);
  return links;
}

std::vector<Wave> planLinkTests(std::span<const TestedGroup> groups, const std::map<Rank, RankSite>& sites,
                                const LinkPlanOptions& options, std::uint64_t firstRun) {
  return planWaves(linksOf(groups), sites, options, transport::Lane::test, firstRun);
}

}  // namespace falcon::validate
