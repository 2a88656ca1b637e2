#include "instrument/blame.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/median.h"
#include "instrument/critical_path.h"

namespace falcon::instrument {
namespace {

constexpr double onlyStretch = 0.8;  // of a rank's growth lies in one stretch of its code

double lengthOf(const PathPiece& piece) {
  return seconds(piece.end - piece.start);
}

struct PieceKey {
  PathPiece::Kind kind;
  Rank rank, from;
  std::uint64_t context;
  bool operator==(const PieceKey&) const = default;
};
struct PieceKeyHash {
  std::size_t operator()(const PieceKey& key) const {
    const auto pair =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.rank)) << 32 | static_cast<std::uint32_t>(key.from);
    return std::hash<std::uint64_t>()(key.context ^
                                      (pair + static_cast<std::uint64_t>(key.kind)) * 0x9e3779b97f4a7c15ULL);
  }
};
PieceKey keyOf(const PathPiece& piece) {
  return {piece.kind, piece.rank, piece.kind == PathPiece::Kind::transfer ? piece.from : -1, piece.context};
}

/// What every stretch usually takes.
using UsualPieces = std::unordered_map<PieceKey, double, PieceKeyHash>;
UsualPieces usualPieces(const std::vector<PathPiece>& pieces) {
  std::unordered_map<PieceKey, std::vector<double>, PieceKeyHash> lengths;
  for (const PathPiece& piece : pieces) lengths[keyOf(piece)].push_back(lengthOf(piece));
  UsualPieces usual;
  for (auto& [key, values] : lengths) usual[key] = lowerMedian(std::move(values), 0);
  return usual;
}

struct Stretch {
  double healthy = 0, now = 0;  ///< seconds
  double growth() const { return now / healthy; }
};

/// What a rank does outside of the library, stretch by stretch.
struct OwnTime {
  double pace = 1;  ///< growth of the middle stretch, each counted by its length: how much more slowly it computes
  /// Most of the growth lies in one stretch that used to be the lesser part.
  bool oneStretch = false;
};

OwnTime ownTimeOf(std::vector<Stretch>& stretches) {
  OwnTime own;
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.growth() < b.growth(); });
  double healthy = 0, grown = 0, most = 0, mostHealthy = 0, below = 0;
  for (const Stretch& each : stretches) healthy += each.healthy;
  for (const Stretch& each : stretches) {
    if (2 * below <= healthy) own.pace = each.growth();
    below += each.healthy;
    const double more = each.now - each.healthy;
    grown += std::max(more, 0.0);
    if (more <= most) continue;
    most = more;
    mostHealthy = each.healthy;
  }
  own.oneStretch = stretches.size() >= 3 && most > onlyStretch * grown && mostHealthy < healthy / 2;
  return own;
}

std::map<Rank, OwnTime> ownTimes(const UsualPieces& healthy, const UsualPieces& now) {
  std::map<Rank, std::vector<Stretch>> stretches;
  for (const auto& [key, length] : now) {
    if (key.kind != PathPiece::Kind::own) continue;
    if (const auto before = healthy.find(key); before != healthy.end() && before->second > 0)
      stretches[key.rank].push_back({before->second, length});
  }
  std::map<Rank, OwnTime> times;
  for (auto& [rank, list] : stretches) times[rank] = ownTimeOf(list);
  return times;
}

/// Seconds an iteration on the path.
struct Account {
  double usual = 0, expected = 0, spent = 0;
  double excess() const { return spent - expected; }
};

using SourceKey = std::tuple<DelaySource::Kind, Rank, Link, CommunicatorId>;

SourceKey sourceOf(const PathPiece& piece) {
  if (piece.kind == PathPiece::Kind::own) return {DelaySource::Kind::rank, piece.rank, {}, 0};
  if (piece.from >= 0) return {DelaySource::Kind::link, -1, {piece.from, piece.rank}, piece.communicator};
  return {DelaySource::Kind::group, -1, {}, piece.communicator};
}

using Accounts = std::map<SourceKey, Account>;

OwnTime ownTimeOf(const std::map<Rank, OwnTime>& times, Rank rank) {
  const auto found = times.find(rank);
  return found == times.end() ? OwnTime() : found->second;
}

/// @param everybody, own  how much more slowly all ranks alike, and single ones, compute
/// @param middle          what a piece counts for; null: for what it took
Accounts accountsOf(const WaitGraph& graph, const UsualPieces& usual, double everybody,
                    const std::map<Rank, OwnTime>& own, int iterations, const UsualPieces* middle) {
  Accounts accounts;
  const double part = 1.0 / std::max(iterations, 1);
  for (const PathPiece& piece : graph.criticalPath()) {
    const auto known = usual.find(keyOf(piece));
    if (known == usual.end()) continue;  // code that the healthy iterations did not run: of nobody
    double excuse = everybody;
    if (piece.kind == PathPiece::Kind::transfer)
      excuse = std::max({excuse, ownTimeOf(own, piece.rank).pace, ownTimeOf(own, piece.from).pace});
    Account& account = accounts[sourceOf(piece)];
    account.usual += part * known->second;
    account.expected += part * known->second * excuse;
    account.spent += part * (middle ? middle->at(keyOf(piece)) : lengthOf(piece));
  }
  return accounts;
}

}  // namespace

int severityOf(double healthySeconds, double slowSeconds) {
  if (healthySeconds <= 0) return 1;
  const double delay = slowSeconds / healthySeconds - 1;
  return delay < 0.15 ? 1 : delay < 0.3 ? 2 : delay < 0.6 ? 3 : 4;
}

Blame blame(const JobTimeline& healthy, const JobTimeline& now, std::span<const CommunicatorMembers> members,
            const BlameRules& rules) {
  Blame result;
  result.healthySeconds = seconds(healthy.end - healthy.start) / std::max(healthy.iterations, 1);
  result.seconds = seconds(now.end - now.start) / std::max(now.iterations, 1);
  const std::set<Rank> irregular = irregularRanks(healthy, now);
  const WaitGraph before(healthy, members, irregular), graph(now, members, irregular);
  const UsualPieces usual = usualPieces(before.allPieces());
  const UsualPieces usualNow = usualPieces(graph.allPieces());
  const std::map<Rank, OwnTime> own = ownTimes(usual, usualNow);
  std::vector<double> all;
  for (const auto& [rank, times] : own) all.push_back(times.pace);
  const double everybody = std::max(1.0, lowerMedian(all, 1));

  Accounts accounts = accountsOf(graph, usual, everybody, own, now.iterations, rules.lasting ? &usualNow : nullptr);
  // What the path holds up even in health: who happens to be last, jitter. Medians have none of it.
  if (!rules.lasting)
    for (const auto& [key, account] : accountsOf(before, usual, 1, {}, healthy.iterations, nullptr))
      if (const auto found = accounts.find(key); found != accounts.end()) found->second.spent -= account.excess();
  double shared = 0;  // seconds that all ranks alike are slower by, on the path
  for (const auto& [key, account] : accounts) shared += account.usual * (everybody - 1);

  const double lengthening = result.seconds - result.healthySeconds;
  const double least = std::max(rules.leastShare * result.healthySeconds, rules.leastPart * lengthening);
  if (lengthening < rules.leastShare * result.healthySeconds) return result;  // it is not slow
  double explained = 0;
  const auto name = [&](DelaySource source) {
    source.share = lengthening > 0 ? std::min(source.seconds / lengthening, 1.0) : 0;
    explained += source.share;
    result.sources.push_back(source);
  };
  // Ranks that share one trouble (a slow stage, a machine) share the path too, and each alone may have little of it.
  double ofSlowRanks = 0;
  const auto computesSlowly = [&](Rank rank) {
    return rank >= 0 && ownTimeOf(own, rank).pace >= rules.leastGrowth * everybody;
  };
  for (const auto& [key, account] : accounts)
    if (computesSlowly(std::get<Rank>(key))) ofSlowRanks += account.excess();
  for (const auto& [key, account] : accounts) {
    const auto& [kind, rank, link, communicator] = key;
    const double growth = account.expected > 0 ? account.spent / account.expected : 1;
    const double weight = computesSlowly(rank) && account.excess() > 0 ? ofSlowRanks : account.excess();
    if (weight < least || growth < rules.leastGrowth) continue;
    name({.kind = kind,
          .rank = rank,
          .link = link,
          .communicator = communicator,
          .seconds = account.excess(),
          .growth = growth,
          .oneStretch = kind == DelaySource::Kind::rank && ownTimeOf(own, rank).oneStretch});
  }
  if (shared >= least) name({.kind = DelaySource::Kind::everybody, .seconds = shared, .growth = everybody});
  std::stable_sort(result.sources.begin(), result.sources.end(),
                   [](const DelaySource& a, const DelaySource& b) { return a.seconds > b.seconds; });
  result.unexplainedShare = lengthening > 0 ? std::clamp(1 - explained, 0.0, 1.0) : 0;
  return result;
}

}  // namespace falcon::instrument
