#include "diagnose/passive_evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "base/median.h"
#include "base/rank_list.h"
#include "diagnose/reach.h"

namespace falcon::diagnose {
namespace {

using instrument::CommunicatorMembers;
using instrument::RankComparison;
using instrument::RankProfile;

double ownGrowth(const RankComparison& rank) {
  return rank.healthy.own > 0 ? rank.now.own / rank.healthy.own : 1;
}

double iterationOf(const RankProfile& profile) {
  return profile.own + profile.inLibrary;
}

std::optional<double> secondsOf(const RankProfile& profile, CommunicatorId communicator) {
  for (const instrument::CommunicatorTime& time : profile.communicators)
    if (time.communicator == communicator) return time.seconds;
  return std::nullopt;
}

/// What took how many times longer, which are how many seconds an iteration.
struct Grown {
  double times = 1, seconds = 0;
};

/// What a connection carried an iteration.
struct Carried {
  double bytes = 0, moving = 0;
  double pace() const { return moving / bytes; }
};

class Observer {
 public:
  Observer(std::span<const RankComparison> ranks, const SuspicionThresholds& thresholds)
      : ranks_(ranks), thresholds_(thresholds) {
    std::vector<double> growths, iterations, delays;
    for (const RankComparison& rank : ranks) {
      collect(rank, rank.healthy, &std::pair<Carried, Carried>::first);
      collect(rank, rank.now, &std::pair<Carried, Carried>::second);
      growths.push_back(ownGrowth(rank));
      iterations.push_back(iterationOf(rank.healthy));
      delays.push_back(iterationOf(rank.now) - iterationOf(rank.healthy));
    }
    seen_.usualGrowth = lowerMedian(growths, 1);  // of two ranks the healthy one tells what is usual
    usual_ = std::max(seen_.usualGrowth, 1.0);    // when all others got faster, nobody is slow
    const double delay = lowerMedian(delays, 1);
    leastSeconds_ = std::max(thresholds.leastShare * lowerMedian(iterations, 1), thresholds.leastPart * delay);
    leastOfRank_ = std::max(leastSeconds_, thresholds.leastPartOfRank * delay);
    whole_ = std::max(leastSeconds_, thresholds.wholePart * delay);
    usualOfLinks_ = std::min(usual_, usualPaceGrowth());
  }

  void observe(const RankComparison& rank) {
    const double growth = ownGrowth(rank) / usual_, longer = rank.now.own - rank.healthy.own;
    const double least = rank.waitedFor ? thresholds_.leastWhereWaitedFor : thresholds_.leastOfRank;
    if (growth < least || longer < leastOfRank_) return;
    seen_.observations.push_back(
        {.quantity = Quantity::ownTime, .rank = rank.rank, .value = std::log(growth), .sigma = deviation(least)});
    seen_.candidates.push_back({.kind = CandidateKind::rank, .rank = rank.rank, .hasWholeDelay = longer >= whole_});
    slowRanks_.emplace_back(seen_.candidates.back(), std::log(growth));
  }

  void observe(const CommunicatorMembers& group) {
    Observation each{.quantity = Quantity::groupTime,
                     .communicator = group.communicator,
                     .ranks = group.members,
                     .sigma = deviation(thresholds_.leastOfGroup)};
    const auto grown = leastWaiting(group);
    if (!grown || grown->now - grown->before * excuseOf(each) < leastSeconds_) return;
    auto links = slowLinks(group);
    if (links && links->empty() && group.partlyTimed) links.reset();  // it may be one that nobody times
    each.value = std::log(grown->now / grown->before);
    seen_.observations.push_back(each);
    seen_.candidates.push_back({.kind = CandidateKind::group, .ranks = group.members, .accusable = !links});
    if (!links) return;
    each.quantity = Quantity::blockedTime;
    for (const auto& [link, longer] : *links) {
      each.link = link;
      each.value = std::log(longer.times);
      seen_.observations.push_back(each);
      links_.emplace(-longer.seconds, Candidate{CandidateKind::link, -1, link, group.members});
    }
  }

  PassiveEvidence take() {
    for (const auto& [seconds, link] : links_) seen_.candidates.push_back(link);
    return std::move(seen_);
  }

 private:
  /// So that the price of a candidate is paid from `least` on.
  static double deviation(double least) { return std::log(least) / std::sqrt(Thresholds().price); }

  /// By how much what is seen may be slower for slow ranks.
  double excuseOf(const Observation& observation) const {
    double excuse = 0;
    for (const auto& [rank, theta] : slowRanks_)
      if (!reachOf(rank, observation).isNone()) excuse = std::max(excuse, theta);
    return std::exp(excuse);
  }

  void collect(const RankComparison& rank, const RankProfile& profile, Carried std::pair<Carried, Carried>::*which) {
    for (const instrument::TransferProfile& transfer : profile.transfers) {
      Carried& sum = connections_[transfer.communicator][{rank.rank, transfer.peer, transfer.sending}].*which;
      sum.bytes += transfer.bytes;
      sum.moving += transfer.moving;
    }
  }

  /// Processors that work more slowly move bytes more slowly, too, but not over a link that is slower than they are: by
  /// how much the connection in the middle takes longer for a byte. Infinite: too few are known to tell.
  double usualPaceGrowth() const {
    std::vector<double> growths;
    for (const auto& [communicator, connections] : connections_)
      for (const auto& [connection, sums] : connections)
        if (const auto& [before, now] = sums; before.bytes > 0 && before.moving > 0 && now.bytes > 0)
          growths.push_back(now.pace() / before.pace());
    return growths.size() < thresholds_.fewestConnections ? INFINITY : std::max(1.0, lowerMedian(growths, 1));
  }

  /// Seconds at least in which the rank's bytes moved in the communicator in health: its connections move them at the
  /// same time.
  double movingOf(Rank rank, CommunicatorId communicator) const {
    const auto found = connections_.find(communicator);
    if (found == connections_.end()) return 0;
    double most = 0;
    const auto& connections = found->second;  // a rank's stand together
    for (auto each = connections.lower_bound({rank, std::numeric_limits<Rank>::min(), false});
         each != connections.end() && std::get<0>(each->first) == rank; ++each)
      most = std::max(most, each->second.first.moving);
    return most;
  }

  struct Seconds {
    double before = INFINITY, now = INFINITY;  ///< beyond what all ranks are slower by
  };
  /// What the member spends in the group that waits least.
  std::optional<Seconds> leastWaiting(const CommunicatorMembers& group) const {
    Seconds least;
    for (const RankComparison& rank : ranks_) {
      if (!contains(group.members, rank.rank)) continue;
      const auto healthySeconds = secondsOf(rank.healthy, group.communicator);
      const auto seconds = secondsOf(rank.now, group.communicator);
      if (!healthySeconds || !seconds) continue;
      const double moving = std::min(*healthySeconds, movingOf(rank.rank, group.communicator));
      const double usual = usual_ * (*healthySeconds - moving) + usualOfLinks_ * moving;
      least = {std::min(least.before, usual), std::min(least.now, *seconds)};
    }
    if (!std::isfinite(least.now) || least.before <= 0) return std::nullopt;
    return least;
  }

  /// Those that have a part of the delay, as the end saw it that saw more. Nothing: there is no timing of this group.
  std::optional<std::map<Link, Grown>> slowLinks(const CommunicatorMembers& group) const {
    const auto found = connections_.find(group.communicator);
    if (found == connections_.end()) return std::nullopt;
    const auto& connections = found->second;
    const auto isMember = [&](Rank peer) { return peer >= 0 && static_cast<std::size_t>(peer) < group.members.size(); };
    // Another ring has connections that the baseline did not: they should be no slower than the group's slowest was.
    std::map<bool, double> slowestBefore;  // seconds a byte, by direction
    for (const auto& [connection, sums] : connections)
      if (double& slowest = slowestBefore[std::get<2>(connection)];
          isMember(std::get<1>(connection)) && sums.first.bytes > 0)
        slowest = std::max(slowest, sums.first.pace());

    std::map<Link, Grown> slow;
    bool known = false;
    for (const auto& [connection, sums] : connections) {
      const auto& [before, after] = sums;
      const auto [reporter, place, sending] = connection;
      if (!isMember(place)) continue;
      const Rank peer = group.members[static_cast<std::size_t>(place)];
      const double healthy = before.bytes > 0 ? before.pace() : slowestBefore[sending];
      if (healthy <= 0 || after.bytes <= 0) continue;
      known = true;
      const Grown grown{after.pace() / healthy / usualOfLinks_, after.moving - healthy * after.bytes};
      if (grown.times < thresholds_.leastOfGroup || grown.seconds < leastSeconds_) continue;
      Grown& most = slow[sending ? Link{reporter, peer} : Link{peer, reporter}];
      if (grown.seconds > most.seconds) most = grown;
    }
    return known ? std::optional(std::move(slow)) : std::nullopt;
  }

  std::span<const RankComparison> ranks_;
  const SuspicionThresholds& thresholds_;
  PassiveEvidence seen_;
  /// By communicator: rank of the job that reports, its peer as rank of the communicator, whether it sends; healthy and
  /// now.
  using Connection = std::tuple<Rank, Rank, bool>;
  std::map<CommunicatorId, std::map<Connection, std::pair<Carried, Carried>>> connections_;
  double usual_ = 1, usualOfLinks_ = 1;
  double leastSeconds_ = 0, leastOfRank_ = 0, whole_ = 0;  // an iteration
  std::vector<std::pair<Candidate, double>> slowRanks_;    // with their theta
  std::multimap<double, Candidate> links_;                 // by how much less the delay is that they have
};

}  // namespace

PassiveEvidence passiveEvidenceOf(std::span<const RankComparison> ranks,
                                  std::span<const CommunicatorMembers> communicators,
                                  const SuspicionThresholds& thresholds) {
  Observer observer(ranks, thresholds);
  for (const RankComparison& rank : ranks) observer.observe(rank);
  for (const CommunicatorMembers& group : communicators) observer.observe(group);
  return observer.take();
}

}  // namespace falcon::diagnose
