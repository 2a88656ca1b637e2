#include "instrument/suspicion.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/format.h"
#include "base/median.h"
#include "instrument/communicator_names.h"

namespace falcon::instrument {
namespace {

bool contains(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Is a group only where the members of a smaller slow group meet others?
bool explainedBy(const std::vector<Rank>& members, const std::vector<Rank>& smaller) {
  const auto isMember = [&](Rank rank) { return contains(members, rank); };
  return smaller.size() < members.size() && std::all_of(smaller.begin(), smaller.end(), isMember);
}

double ownGrowth(const RankComparison& rank) {
  return rank.healthy.own > 0 ? rank.now.own / rank.healthy.own : 1;
}

class Judge {
 public:
  Judge(std::span<const RankComparison> ranks, const SuspicionRules& rules) : ranks_(ranks), rules_(rules) {
    std::vector<double> growths, iterations, lengthenings;
    for (const RankComparison& rank : ranks_) {
      const double healthy = rank.healthy.own + rank.healthy.inLibrary;
      growths.push_back(ownGrowth(rank));
      iterations.push_back(healthy);
      lengthenings.push_back(rank.now.own + rank.now.inLibrary - healthy);
    }
    // Of two ranks the healthy one tells what is usual.
    usual_ = lowerMedian(growths, 1);
    const double lengthening = lowerMedian(lengthenings, 1);
    leastGrowth_ = std::max(rules.leastShare * lowerMedian(iterations, 1), rules.leastPart * lengthening);
    leastOfRank_ = rules.leastPartOfRank * lengthening;
    wholeGrowth_ = std::max(leastGrowth_, rules.wholePart * lengthening);
  }

  double usual() const { return usual_; }

  std::vector<ComputeSuspect> slowRanks() {
    std::vector<ComputeSuspect> suspects;
    for (const RankComparison& rank : ranks_) {
      // Against the usual growth, but slower than its own baseline too: when all others got faster, nobody is slow.
      const double growth = ownGrowth(rank) / std::max(usual_, 1.0);
      const double longer = rank.now.own - rank.healthy.own;
      if (growth < rules_.computeGrowth || longer < leastGrowth_ || longer < leastOfRank_) continue;
      const bool explainsAll = longer >= wholeGrowth_;
      suspects.push_back({rank.rank, growth, explainsAll});
      excuse_[rank.rank] = growth;
      if (explainsAll) explainsAll_.insert(rank.rank);
    }
    return suspects;
  }

  /// Adds the group where it belongs, if anywhere.
  void judge(const CommunicatorMembers& group, Suspicion& suspicion) const {
    const auto least = leastWaiting(group);
    if (!least || least->seconds < leastGrowth_) return;
    const GroupSuspect suspect{group.communicator, least->growth, {}};
    const bool muchLonger = least->growth >= rules_.transferGrowth * least->excuse;
    const auto byLink = slowestLink(group);
    const bool timed = byLink.has_value();
    const bool byOthers = timed && *byLink;
    if (!byOthers && (!muchLonger || hasWholeCause(group))) return;
    (timed && !byOthers ? suspicion.waiting : suspicion.groups).push_back(suspect);
    if (byOthers) suspicion.groups.back().slowest = **byLink;
    if (timed && !byOthers) suspicion.waiting.back().waitsOnly = true;
  }

 private:
  const RankComparison* find(Rank rank) const {
    for (const RankComparison& each : ranks_)
      if (each.rank == rank) return &each;
    return nullptr;
  }

  /// What growth a suspected rank explains on everything it touches.
  double excuseOf(Rank a, Rank b) const {
    double excuse = 1;
    for (const Rank rank : {a, b})
      if (const auto found = excuse_.find(rank); found != excuse_.end()) excuse = std::max(excuse, found->second);
    return excuse;
  }

  bool hasWholeCause(const CommunicatorMembers& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](Rank member) { return explainsAll_.contains(member); });
  }

  /// The one of those that grew that has most of the delay. Empty: there is no per-channel timing of this group.
  /// Nothing in it: there is, and all is well.
  std::optional<std::optional<Link>> slowestLink(const CommunicatorMembers& group) const {
    struct Sum {
      double bytes = 0, moving = 0;
    };
    using Connection = std::tuple<Rank, Rank, bool, int>;   // job rank that reports, peer, sending, channel
    std::map<Connection, std::pair<Sum, Sum>> connections;  // healthy, now
    const auto collect = [&](const RankComparison& rank, const RankProfile& profile, bool healthy) {
      for (const TransferProfile& transfer : profile.transfers) {
        const auto peer = static_cast<std::size_t>(transfer.peer);
        if (transfer.communicator != group.communicator || transfer.peer < 0 || peer >= group.members.size()) continue;
        auto& [before, after] = connections[{rank.rank, group.members[peer], transfer.sending, transfer.channel}];
        Sum& sum = healthy ? before : after;
        sum.bytes += transfer.bytes;
        sum.moving += transfer.moving;
      }
    };
    for (const RankComparison& rank : ranks_) collect(rank, rank.healthy, true), collect(rank, rank.now, false);

    // Another ring has connections that the baseline did not: they should be no slower than the group's slowest was.
    std::map<bool, double> slowestBefore;  // seconds a byte, by direction
    for (const auto& [connection, sums] : connections)
      if (const Sum& before = sums.first; before.bytes > 0)
        slowestBefore[std::get<2>(connection)] =
            std::max(slowestBefore[std::get<2>(connection)], before.moving / before.bytes);

    std::optional<Link> worst;
    double mostSeconds = 0;
    bool known = false;
    for (const auto& [connection, sums] : connections) {
      const auto& [before, after] = sums;
      const auto [reporter, peer, sending, channel] = connection;
      const double healthy = before.bytes > 0 ? before.moving / before.bytes : slowestBefore[sending];
      if (healthy <= 0 || after.bytes <= 0) continue;
      known = true;
      const double growth = after.moving / after.bytes / healthy / std::max(usual_, 1.0);
      const double seconds = after.moving - healthy * after.bytes;
      if (growth < rules_.transferGrowth * excuseOf(reporter, peer) || seconds < leastGrowth_) continue;
      if (explainsAll_.contains(reporter) || explainsAll_.contains(peer)) continue;
      if (worst && mostSeconds >= seconds) continue;
      worst = sending ? Link{reporter, peer} : Link{peer, reporter};
      mostSeconds = seconds;
    }
    if (!known) return std::nullopt;
    return worst;
  }

  /// What the member that waits least spends in the group.
  struct LeastWaiting {
    double growth = 1;   ///< against its baseline
    double seconds = 0;  ///< an iteration more than suspected members explain
    double excuse = 1;   ///< what growth these explain
  };
  std::optional<LeastWaiting> leastWaiting(const CommunicatorMembers& group) const {
    double before = INFINITY, now = INFINITY, excuse = 1;
    for (const Rank member : group.members) {
      const RankComparison* rank = find(member);
      const auto healthySeconds = rank ? secondsOf(rank->healthy, group.communicator) : std::nullopt;
      const auto seconds = rank ? secondsOf(rank->now, group.communicator) : std::nullopt;
      if (!healthySeconds || !seconds) continue;
      before = std::min(before, *healthySeconds);
      now = std::min(now, *seconds);
      excuse = std::max(excuse, excuseOf(member, member));
    }
    if (!std::isfinite(now) || before <= 0) return std::nullopt;
    const double usual = std::max(usual_, 1.0);
    return LeastWaiting{now / before / usual, now - before * usual * excuse, excuse};
  }

  static std::optional<double> secondsOf(const RankProfile& profile, CommunicatorId communicator) {
    for (const CommunicatorTime& time : profile.communicators)
      if (time.communicator == communicator) return time.seconds;
    return std::nullopt;
  }

  std::span<const RankComparison> ranks_;
  const SuspicionRules& rules_;
  double usual_ = 1;                                            // growth of own time, of the middle rank
  double leastGrowth_ = 0, leastOfRank_ = 0, wholeGrowth_ = 0;  // seconds
  std::map<Rank, double> excuse_;
  std::set<Rank> explainsAll_;
};

}  // namespace

Suspicion suspect(std::span<const RankComparison> ranks, std::span<const CommunicatorMembers> communicators,
                  const SuspicionRules& rules) {
  Judge judge(ranks, rules);
  Suspicion result;
  result.ranks = judge.slowRanks();
  std::map<CommunicatorId, std::vector<Rank>> membersOf;
  for (const CommunicatorMembers& group : communicators) {
    membersOf[group.communicator] = group.members;
    judge.judge(group, result);
  }
  for (std::vector<GroupSuspect>* groups : {&result.groups, &result.waiting}) {
    const std::vector<GroupSuspect> all = *groups;
    std::erase_if(*groups, [&](const GroupSuspect& group) {
      return std::any_of(all.begin(), all.end(), [&](const GroupSuspect& other) {
        return explainedBy(membersOf[group.communicator], membersOf[other.communicator]);
      });
    });
  }
  const auto worstFirst = [](const auto& a, const auto& b) { return a.growth > b.growth; };
  std::stable_sort(result.ranks.begin(), result.ranks.end(), worstFirst);
  std::stable_sort(result.groups.begin(), result.groups.end(), worstFirst);
  std::stable_sort(result.waiting.begin(), result.waiting.end(), worstFirst);

  result.usualGrowth = judge.usual();
  result.compared = ranks.size();
  result.reason = reasonFor(result, communicators);
  return result;
}

std::string reasonFor(const Suspicion& suspicion, std::span<const CommunicatorMembers> communicators) {
  std::string text;
  const auto say = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto membersOf = [&](CommunicatorId id) {
    for (const CommunicatorMembers& each : communicators)
      if (each.communicator == id) return each.name.empty() ? ranksText(each.members) : each.name;
    return CommunicatorNames().membersOf(id);
  };
  for (const ComputeSuspect& each : suspicion.ranks)
    say(fmt::format("rank {} computes {:.2f}x longer than usual", each.rank, each.growth));
  for (const GroupSuspect& each : suspicion.groups)
    say(each.waitsOnly ? fmt::format("all of {} wait {:.1f} times longer there, and who for is not told",
                                     membersOf(each.communicator), each.growth)
                       : fmt::format("communication among {} takes {:.2f}x its healthy time",
                                     membersOf(each.communicator), each.growth));
  if (text.empty())
    return fmt::format("computing grew by {:.2f}x in the middle of {} ranks", suspicion.usualGrowth,
                       suspicion.compared);
  return text;
}

}  // namespace falcon::instrument
