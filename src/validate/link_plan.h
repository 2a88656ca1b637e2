// Which links are tested, and which of them at the same time. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "validate/link_measurement.h"

namespace falcon::validate {

/// A communicator under suspicion.
struct TestedGroup {
  CommunicatorId id = 0;
  std::vector<Rank> jobRanks;    ///< by rank of the communicator
  std::vector<Rank> ring;        ///< ranks of the communicator in ring order, of all channels; empty: 0, 1, 2 ...
  int trees = 0;                 ///< of the double binary tree, the first ones: channels take turns between two
  std::vector<Link> pairs = {};  ///< ranks of the communicator that are neighbours in none of these, and send
  bool onlyCompared = false;     ///< not suspicious: with its links those of others are compared
};

/// Where a rank sits. Unknown parts stay empty and then count as the rank's own.
struct RankSite {
  std::string node;     ///< ranks with equal node share memory
  std::string address;  ///< of its data sockets, without the port: links over one address disturb each other
  std::string host;     ///< the machine, whose cores its ranks share
};

struct LinkPlanOptions {
  /// Ends of links that run at the same time on one host: its cores. More pairs than the cores carry measure the
  /// scheduler.
  int endsPerHost = 2;
};

/// Links that share no rank, no address and no medium with each other: they could run at the same time if the cores of
/// their hosts carried them.
struct LinkPass {
  bool overSockets = false;
  std::vector<WaveLink> links;
  bool ifTime = false;  ///< to be left out where the time is short
  bool again = false;   ///< measured before, and looked slow
};

/// The union of links in few passes, those over sockets first. What appears several times is in one of them: a pair of
/// ranks, and so a pair of addresses, one way, unless too few links would be left to be compared. On the number of
/// passes only depends how many links one rank or one address has, not how many ranks there are.
/// @param sites  by job rank
std::vector<LinkPass> passesOf(std::span<const WaveLink> links, const std::map<Rank, RankSite>& sites);

/// Takes out of `links`, of one pass, what may run together with at most so many ends on a host. A link that alone
/// needs more is a wave by itself.
std::vector<WaveLink> takeWave(std::vector<WaveLink>& links, const std::map<Rank, RankSite>& sites, int endsPerHost);

/// Tests every link of every group once, both directions, as few at a time as the resources allow. In a wave no rank
/// and no address appears twice, and all links use the same medium. A pair of ranks that is a link of several groups is
/// tested in the first of them. Groups of fewer than two ranks, and those whose ring is no permutation, have no links.
///
/// @param sites    by job rank
/// @param firstRun  number of the first wave; the others follow
std::vector<Wave> planLinkTests(std::span<const TestedGroup> groups, const std::map<Rank, RankSite>& sites,
                                const LinkPlanOptions& options, std::uint64_t firstRun);

/// The same for links that were chosen already, as one to probe.
std::vector<Wave> planWaves(std::span<const WaveLink> links, const std::map<Rank, RankSite>& sites,
                            const LinkPlanOptions& options, transport::Lane lane, std::uint64_t firstRun);

/// All links of a group, both directions, in the order of the papers' passes: of its ring, of its trees, and its pairs.
std::vector<WaveLink> linksOf(const TestedGroup& group);
std::vector<WaveLink> linksOf(std::span<const TestedGroup> groups);

}  // namespace falcon::validate
