#include "control/decisions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "base/median.h"
#include "control/layout_facts.h"
#include "control/memory_facts.h"
#include "control/network_conditions.h"
#include "control/pace_facts.h"
#include "control/peers.h"
#include "control/profiled_times.h"

namespace falcon::control {
namespace {

instrument::RankProfile profileOf(const RankMeans& means, double microBatches, const TransferView& transfers) {
  instrument::RankProfile profile;
  profile.own = means.outsidePerMicroBatch * microBatches;
  profile.inLibrary = means.duration - means.outside;
  for (const auto& [id, seconds] : means.inLibrary) profile.communicators.push_back({id, seconds});
  profile.transfers = perIteration(transfers);
  return profile;
}

// What a rank's iterations took in health, and take now.
struct ComparedMeans {
  RankMeans healthy, now;
};

void take(RankMeans& means, const ProfiledTimes& times) {
  means.outside = times.outside;
  means.outsidePerMicroBatch = times.outside / std::max(1.0, means.microBatches);
  means.inLibrary = times.inCalls;
}

std::optional<ComparedMeans> comparedMeans(const MemberView& member, std::size_t window, OwnTime known) {
  // Calls that the device has not timed (those of a graph) are missing, and nobody may look slow by that.
  constexpr double otherCalls = 0.1;
  auto now = JobView::comparableMeans(member, window);
  if (!now) return std::nullopt;
  ComparedMeans means{*member.healthy, std::move(*now)};
  if (known == OwnTime::inSamples || means.healthy.outside != Sample::unknownOutside ||
      means.now.outside != Sample::unknownOutside)
    return means;
  const auto healthyTimes = profiledTimes(member.healthyCalls, means.healthy.duration);
  const auto times = profiledTimes(member.calls, means.now.duration);
  if (!healthyTimes || !times || std::abs(times->calls / healthyTimes->calls - 1) > otherCalls) return means;
  take(means.healthy, *healthyTimes);
  take(means.now, *times);
  return means;
}

std::optional<double> growthOfOwnTime(const RankMeans& healthy, const RankMeans& now) {
  if (healthy.outsidePerMicroBatch <= 0 || now.outsidePerMicroBatch <= 0) return std::nullopt;  // one is unknown
  return now.outsidePerMicroBatch / healthy.outsidePerMicroBatch;
}

bool sameAddress(const JobView& job, Rank one, Rank other) {
  if (one == other) return true;
  const auto first = job.processOf(one), second = job.processOf(other);
  if (!first || !second) return false;
  const std::string& address = job.members().at(*first).identity.address;
  return !address.empty() && address == job.members().at(*second).identity.address;
}

/// Itself, and whoever has the same address.
std::vector<Rank> ranksBeside(const JobView& job, Rank rank) {
  std::vector<Rank> ranks{rank};
  for (const auto& [process, member] : job.members())
    if (member.identity.jobRank != rank && sameAddress(job, member.identity.jobRank, rank))
      ranks.push_back(member.identity.jobRank);
  return ranks;
}

/// What the member was seen to send in the communicator, in the newest profile, else in the baseline; and in the
/// latter.
void addCarried(const MemberView& member, CommunicatorId id, Rank rank, rebalance::CommunicatorFacts& facts) {
  for (const TransferSum& sum : member.healthyTransfers.sums)
    if (sum.id == id && sum.sending && member.healthyTransfers.iterations > 0)
      facts.usual[{rank, sum.peer}] +=
          static_cast<double>(sum.bytes) / static_cast<double>(member.healthyTransfers.iterations);
  const TransferView& view = member.newestTransfers();
  if (view.iterations == 0) return;
  const auto iterations = static_cast<double>(view.iterations);
  for (const TransferSum& sum : view.sums) {
    if (sum.id != id || !sum.sending) continue;
    rebalance::Carried& carried = facts.carried[{rank, sum.peer}];
    carried.all += static_cast<double>(sum.bytes) / iterations;
    carried.aroundRing += static_cast<double>(sum.ringBytes) / iterations;
  }
}

rebalance::CommunicatorFacts factsOf(const JobView& job, const CommunicatorFormed& communicator,
                                     std::map<std::string, int>& nodes) {
  rebalance::CommunicatorFacts facts;
  facts.id = communicator.id;
  facts.members = communicator.jobRanks;
  if (communicator.nodes.size() == communicator.jobRanks.size())
    for (const std::string& node : communicator.nodes)
      facts.nodes.push_back(nodes.emplace(node, static_cast<int>(nodes.size())).first->second);
  facts.ring = communicator.ring;
  facts.firstRing = communicator.firstRing;
  facts.ringCollectives = false;
  bool everybodyObeys = communicator.hostEngine && communicator.ring.size() == communicator.jobRanks.size();
  for (std::size_t rank = 0; rank < communicator.jobRanks.size(); ++rank) {
    const auto process = job.processOf(communicator.jobRanks[rank]);
    if (!process) {
      everybodyObeys = false;
      continue;
    }
    const MemberView& member = job.members().at(*process);
    addCarried(member, communicator.id, static_cast<Rank>(rank), facts);
    const auto traffic = member.traffic.find(communicator.id);
    if (traffic == member.traffic.end()) continue;
    facts.ringCollectives = facts.ringCollectives || traffic->second.collectives;
    for (const Rank peer : traffic->second.sendsTo) facts.pointToPoint.push_back({static_cast<Rank>(rank), peer});
  }
  facts.ringCollectives = facts.ringCollectives && everybodyObeys;
  return facts;
}

}  // namespace

std::vector<instrument::TransferProfile> perIteration(const TransferView& transfers) {
  std::vector<instrument::TransferProfile> profiles;
  if (transfers.iterations == 0) return profiles;
  const auto iterations = static_cast<double>(transfers.iterations);
  std::map<std::tuple<CommunicatorId, Rank, bool>, instrument::TransferProfile> connections;
  for (const TransferSum& sum : transfers.sums) {
    instrument::TransferProfile& profile = connections[{sum.id, sum.peer, sum.sending}];
    profile.communicator = sum.id;
    profile.peer = sum.peer;
    profile.sending = sum.sending;
    profile.bytes += static_cast<double>(sum.bytes) / iterations;
    profile.moving += sum.moving / iterations;
    profile.waiting += sum.waiting / iterations;
  }
  for (const auto& [connection, profile] : connections) profiles.push_back(profile);
  return profiles;
}

std::vector<instrument::RankComparison> comparisonsOf(const JobView& job, std::size_t window) {
  std::vector<instrument::RankComparison> comparisons;
  for (const auto& [process, member] : job.members()) {
    const auto means = comparedMeans(member, window, OwnTime::alsoInProfile);
    if (!means) continue;
    const double microBatches = member.healthy->microBatches;
    comparisons.push_back({member.identity.jobRank, profileOf(means->healthy, microBatches, member.healthyTransfers),
                           profileOf(means->now, microBatches, member.transfers)});
  }
  return comparisons;
}

instrument::CommunicatorNames communicatorNames(const JobView& job) {
  return instrument::CommunicatorNames(shapesOf(job));
}

std::vector<instrument::CommunicatorMembers> communicatorMembers(const JobView& job) {
  const instrument::CommunicatorNames names = communicatorNames(job);
  std::vector<instrument::CommunicatorMembers> all;
  for (const auto& [id, communicator] : job.communicators())
    all.push_back({id, communicator.jobRanks, names.membersOf(id), !communicator.hostEngine});
  return all;
}

diagnose::SeenInProfile seenInProfile(const JobView& job, std::size_t window, std::span<const Culprit> known) {
  diagnose::SeenInProfile seen{.ranks = comparisonsOf(job, window),
                               .communicators = communicatorMembers(job),
                               .network = networkConditions(job)};
  for (const Culprit& culprit : known) {
    if (culprit.kind == CulpritKind::rank)
      seen.known.push_back({.kind = diagnose::CandidateKind::rank, .rank = culprit.rank});
    if (culprit.kind != CulpritKind::link) continue;
    const auto [from, to] = culprit.link;
    const bool inside = sameAddress(job, from, to);
    for (const Rank sender : inside ? std::vector{from} : ranksBeside(job, from))
      for (const Rank receiver : inside ? std::vector{to} : ranksBeside(job, to))
        seen.known.push_back({.kind = diagnose::CandidateKind::link, .link = {sender, receiver}});
  }
  return seen;
}

std::vector<Suspect> suspectsOf(const diagnose::Suspicion& suspicion, const JobView& job) {
  std::vector<Suspect> suspects;
  for (const auto& each : suspicion.ranks) suspects.push_back({{each.rank}, each.growth});
  for (const auto& each : suspicion.groups)
    if (const auto found = job.communicators().find(each.communicator); found != job.communicators().end())
      suspects.push_back({found->second.jobRanks, each.growth});
  return suspects;
}

std::optional<double> ownTimeGrowth(const MemberView& member, std::size_t window, OwnTime known) {
  const auto means = comparedMeans(member, window, known);
  return means ? growthOfOwnTime(means->healthy, means->now) : std::nullopt;
}

double usualGrowth(const JobView& job, std::size_t window, OwnTime known) {
  std::vector<double> growths;
  for (const auto& [process, member] : job.members())
    if (const auto growth = ownTimeGrowth(member, window, known)) growths.push_back(*growth);
  if (growths.empty()) return 1;
  const auto middle = growths.begin() + static_cast<std::ptrdiff_t>(growths.size() / 2);
  std::nth_element(growths.begin(), middle, growths.end());
  return *middle > 0 ? *middle : 1;
}

double iterationGrowth(const JobView& job, std::size_t window) {
  std::vector<double> growths;
  for (const auto& [process, member] : job.members())
    if (const auto now = JobView::comparableMeans(member, window); now && member.healthy->duration > 0)
      growths.push_back(now->duration / member.healthy->duration);
  return lowerMedian(growths, 1);
}

std::vector<diagnose::HostObservation> hostObservations(const JobView& job, std::size_t window) {
  struct Host {
    diagnose::HostObservation seen;
    std::vector<double> growths;
    double members = 0;
    bool complete = true;
  };
  const auto add = [](diagnose::HostUse& use, const RankMeans& means) {
    use.iteration += means.duration;
    use.processor += *means.processor;
    use.busyCores += *means.busyCores;
    use.stolenCores += *means.stolenCores;
  };
  const auto divide = [](diagnose::HostUse& use, double members) {
    use.iteration /= members;
    use.busyCores /= members;
    use.stolenCores /= members;
  };
  std::map<std::string, Host> hosts;
  for (const auto& [process, member] : job.members()) {
    // Containers of one machine have names of their own, and share its processors.
    const auto& identity = member.identity;
    Host& host = hosts[identity.clockDomain.empty() ? identity.host : identity.clockDomain];
    if (host.seen.host.empty()) host.seen.host = identity.host;
    host.seen.processors = std::max(host.seen.processors, static_cast<int>(identity.processors));
    const auto now = JobView::comparableMeans(member, window);
    const auto growth = now ? growthOfOwnTime(*member.healthy, *now) : std::nullopt;
    if (!growth || !now->processor || !member.healthy->processor) {
      host.complete = false;  // what a member does not tell would be taken for somebody else's
      continue;
    }
    add(host.seen.healthy, *member.healthy);
    add(host.seen.now, *now);
    host.growths.push_back(*growth);
    ++host.members;
  }
  std::vector<diagnose::HostObservation> observations;
  for (auto& [domain, host] : hosts) {
    if (!host.complete || host.members == 0) continue;
    divide(host.seen.healthy, host.members);
    divide(host.seen.now, host.members);
    host.seen.ranks = static_cast<int>(host.members);
    host.seen.ownGrowth = lowerMedian(host.growths, 1);
    observations.push_back(std::move(host.seen));
  }
  return observations;
}

double delayOf(const JobView& job, std::size_t window) {
  double delay = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [process, member] : job.members())
    if (const auto now = JobView::comparableMeans(member, window))
      delay = std::fmax(delay, now->duration - member.healthy->duration);
  return delay;
}

std::optional<double> shareOfDelay(const MemberView& member, std::size_t window, double delay, double usual) {
  const auto means = comparedMeans(member, window, OwnTime::alsoInProfile);
  if (!means || !(delay > 0) || !growthOfOwnTime(means->healthy, means->now)) return std::nullopt;
  const double expected = means->healthy.outsidePerMicroBatch * std::max(1.0, usual);
  return (means->now.outsidePerMicroBatch - expected) * means->now.microBatches / delay;
}

std::vector<RangeGrowth> rangeGrowths(const JobView& job, std::size_t window) {
  constexpr double leastGrowth = 1.1;
  constexpr std::size_t mostNamed = 8;
  std::vector<RangeGrowth> growths;
  for (const auto& [process, member] : job.members()) {
    const auto now = JobView::comparableMeans(member, window);
    if (!now) continue;
    for (const auto& [name, seconds] : now->ranges) {
      const auto before = member.healthy->ranges.find(name);
      if (before == member.healthy->ranges.end() || seconds < leastGrowth * before->second) continue;
      growths.push_back({member.identity.jobRank, name, before->second * 1e3, seconds * 1e3});
    }
  }
  std::sort(growths.begin(), growths.end(), [](const RangeGrowth& a, const RangeGrowth& b) {
    return a.afterMilliseconds - a.beforeMilliseconds > b.afterMilliseconds - b.beforeMilliseconds;
  });
  if (growths.size() > mostNamed) growths.resize(mostNamed);
  return growths;
}

bool hasFoldersOfHosts(const JobView& job) {
  bool some = false, others = false;
  for (const auto& [process, member] : job.members()) {
    if (member.restart.checkpoint < 0) continue;
    (member.restart.seesOthers ? some : others) = true;
  }
  return some && others;  // where nobody finds it, it is not there
}

std::optional<double> restartSecondsOf(const JobView& job) {
  if (hasFoldersOfHosts(job)) return std::nullopt;
  double expected = 0, measured = 0, keeping = 0;
  for (const auto& [process, member] : job.members()) {
    const RestartKnown& known = member.restart;
    if (!known.asked) return std::nullopt;
    expected = std::max(expected, known.expectedSeconds);
    measured = std::max(measured, known.measuredSeconds);
    keeping = std::max(keeping, known.waitedSeconds + known.writtenSeconds);
  }
  return (measured > 0 ? measured : expected) + keeping;
}

rebalance::JobFacts jobFactsOf(const JobView& job, std::size_t window, bool deterministic,
                               std::span<const Culprit> known) {
  rebalance::JobFacts facts;
  facts.deterministic = deterministic;
  facts.restartSeconds = restartSecondsOf(job);
  std::map<std::string, int> nodes;
  const instrument::CommunicatorNames names = communicatorNames(job);
  for (const auto& [id, communicator] : job.communicators()) {
    facts.communicators.push_back(factsOf(job, communicator, nodes));
    facts.communicators.back().name = names.nameOf(id);
  }
  for (const auto& [process, member] : job.members())
    if (!member.identity.address.empty()) facts.addresses[member.identity.jobRank] = member.identity.address;
  addLayout(job, nodes, facts);
  addRoles(job, facts);
  addMemory(job, facts);
  if (!facts.layout) return facts;
  addPaces(job, window, known, facts);
  if (!facts.nodeOfPlace.empty()) facts.volumes = volumesOf(job);
  return facts;
}

rebalance::Strategy strategyOf(const rebalance::Plan& plan) {
  using rebalance::PlanKind, rebalance::Strategy;
  switch (plan.kind) {
    case PlanKind::none:
      return Strategy::ignore;
    case PlanKind::reroute:
      return Strategy::reroute;
    case PlanKind::splitMicroBatches:
      return Strategy::splitMicroBatches;
    case PlanKind::restart:
      return Strategy::restart;
    case PlanKind::swap:
      return Strategy::changeTopology;
    case PlanKind::advise:
      return plan.permutation ? Strategy::changeTopology : Strategy::restart;
  }
  return Strategy::ignore;
}

double priceOf(const rebalance::Plan& plan, double healthyIterationSeconds, const rebalance::Prices& prices) {
  using rebalance::PlanKind;
  const rebalance::Strategy strategy = strategyOf(plan);
  if (plan.kind == PlanKind::advise) return rebalance::priceOf(strategy, healthyIterationSeconds);
  const bool estimated = plan.kind == PlanKind::restart || plan.kind == PlanKind::swap;
  return prices.of(strategy, healthyIterationSeconds, estimated ? std::optional(plan.priceSeconds) : std::nullopt);
}

bool isDue(const rebalance::Plan& plan, double lossSeconds, double healthyIterationSeconds) {
  return lossSeconds >= priceOf(plan, healthyIterationSeconds);
}

bool isSameCulprit(const Culprit& one, const Culprit& other) {
  if (one.kind != other.kind) return false;
  if (one.kind == CulpritKind::rank) return one.rank == other.rank;
  if (one.kind == CulpritKind::host) return one.host == other.host;
  return one.link == other.link || one.link == Link{other.link.to, other.link.from};
}

std::optional<Rank> communicatorRank(const CommunicatorFormed& communicator, Rank jobRank) {
  const auto found = std::find(communicator.jobRanks.begin(), communicator.jobRanks.end(), jobRank);
  if (found == communicator.jobRanks.end()) return std::nullopt;
  return static_cast<Rank>(found - communicator.jobRanks.begin());
}

}  // namespace falcon::control
