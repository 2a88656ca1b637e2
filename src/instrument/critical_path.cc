#include "instrument/critical_path.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "instrument/call_hash.h"

namespace falcon::instrument {
namespace {

std::uint64_t kindOf(const TimelineCall& call) {
  const std::uint64_t what = static_cast<std::uint64_t>(call.operation) << 32 | static_cast<std::uint32_t>(call.peer);
  return mixed(mixed(mixed(0x9e3779b97f4a7c15ULL, call.communicator), what), call.bytes);
}

std::vector<std::uint64_t> kindsOf(const RankTimeline& rank) {
  std::vector<std::uint64_t> kinds;
  kinds.reserve(rank.calls.size());
  for (const TimelineCall& call : rank.calls) kinds.push_back(kindOf(call));
  return kinds;
}

/// Of a sequence that consists of repeats, the last of them perhaps cut short. Prefix function; linear.
std::size_t shortestPeriod(std::span<const std::uint64_t> values) {
  std::vector<std::size_t> border(values.size() + 1, 0);
  for (std::size_t i = 1; i < values.size(); ++i) {
    std::size_t length = border[i];
    while (length > 0 && values[i] != values[length]) length = border[length];
    border[i + 1] = values[i] == values[length] ? length + 1 : 0;
  }
  return values.size() - border[values.size()];
}

/// Where the lexicographically least rotation begins. Linear (two candidates that overtake each other).
std::size_t leastRotation(std::span<const std::uint64_t> values) {
  const std::size_t size = values.size();
  std::size_t one = 0, other = 1, same = 0;
  while (one < size && other < size && same < size) {
    const std::uint64_t a = values[(one + same) % size], b = values[(other + same) % size];
    if (a == b) {
      ++same;
      continue;
    }
    (a > b ? one : other) += same + 1;
    if (one == other) ++other;
    same = 0;
  }
  return std::min(one, other);
}

/// Calls that belong together have equal keys: a collective's number, or a message's pair and number.
using MatchKey = std::tuple<CommunicatorId, Rank, Rank, std::uint64_t>;
struct MatchKeyHash {
  std::size_t operator()(const MatchKey& key) const {
    const auto [communicator, from, to, sequence] = key;
    const std::uint64_t pair =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 | static_cast<std::uint32_t>(to);
    return mixed(mixed(mixed(1, communicator), pair), sequence);
  }
};

/// Numbers that tell the stretches of an iteration apart, the same in every run: where in the repeating pattern a call
/// stands, counted from the pattern's least rotation. Calls without a pattern are told apart by what came before them.
std::vector<std::uint64_t> contextsOf(const std::vector<std::uint64_t>& kinds, bool byPosition) {
  std::vector<std::uint64_t> contexts(kinds.size());
  const std::size_t period = shortestPeriod(kinds);
  if (!byPosition || 2 * period > kinds.size()) {
    for (std::size_t i = 0; i < kinds.size(); ++i) contexts[i] = mixed(kinds[i], i > 0 ? kinds[i - 1] : 0);
    return contexts;
  }
  const std::size_t origin = leastRotation(std::span(kinds).first(period));
  for (std::size_t i = 0; i < kinds.size(); ++i) contexts[i] = mixed(kinds[i], (i + period - origin) % period);
  return contexts;
}

/// Who of a collective's members this one depends on: the root's data alone, or everybody's. A scatter between nodes
/// passes through others (binomial_scatter.cc), and one that is late there is as good as the root.
bool needsOnlyRoot(Operation operation) {
  return operation == Operation::broadcast;
}

}  // namespace

std::set<Rank> irregularRanks(const JobTimeline& one, const JobTimeline& other) {
  const auto periodOf = [](const RankTimeline& rank) { return shortestPeriod(kindsOf(rank)); };
  std::map<Rank, std::size_t> periods;
  for (const RankTimeline& rank : one.ranks) periods[rank.rank] = periodOf(rank);
  std::set<Rank> irregular;
  for (const RankTimeline& rank : other.ranks)
    if (const auto found = periods.find(rank.rank); found != periods.end() && found->second != periodOf(rank))
      irregular.insert(rank.rank);
  return irregular;
}

WaitGraph::WaitGraph(const JobTimeline& timeline, std::span<const CommunicatorMembers> members,
                     const std::set<Rank>& irregular)
    : timeline_(timeline) {
  for (const CommunicatorMembers& each : members) members_[each.communicator] = each.members;
  std::unordered_map<MatchKey, std::size_t, MatchKeyHash> numbers;
  rows_.resize(timeline.ranks.size());
  for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
    const RankTimeline& from = timeline.ranks[rank];
    Row& row = rows_[rank];
    std::unordered_map<CommunicatorId, Rank> places;
    for (const auto& [communicator, ranks] : members_)
      if (const auto found = std::find(ranks.begin(), ranks.end(), from.rank); found != ranks.end())
        places[communicator] = static_cast<Rank>(found - ranks.begin());
    row.contexts = contextsOf(kindsOf(from), !irregular.contains(from.rank));
    for (std::size_t i = 0; i < from.calls.size(); ++i) {
      const TimelineCall& call = from.calls[i];
      const auto place = places.find(call.communicator);
      // A rank that no communicator lists stands alone: its calls match nobody's.
      MatchKey key{call.communicator, -2 - static_cast<Rank>(rank), -2 - static_cast<Rank>(i), call.sequence};
      if (place != places.end()) {
        key = {call.communicator, -1, -1, call.sequence};
        if (call.operation == Operation::send) key = {call.communicator, place->second, call.peer, call.sequence};
        if (call.operation == Operation::receive) key = {call.communicator, call.peer, place->second, call.sequence};
      }
      const std::size_t number = numbers.emplace(key, matches_.size()).first->second;
      if (number == matches_.size()) matches_.emplace_back();
      matches_[number].push_back({rank, i});
      row.matches.push_back(number);
      const bool later = i == 0 || call.leave >= from.calls[row.latest.back()].leave;
      row.latest.push_back(later ? i : row.latest.back());
    }
  }
  for (auto& match : matches_)
    std::stable_sort(match.begin(), match.end(),
                     [&](Participant one, Participant other) { return callOf(one).enter > callOf(other).enter; });
}

const TimelineCall& WaitGraph::callOf(Participant participant) const {
  return timeline_.ranks[participant.rank].calls[participant.call];
}

bool WaitGraph::waitsFor(Participant waiting, Participant other) const {
  const TimelineCall& mine = callOf(waiting);
  const TimelineCall& theirs = callOf(other);
  if (theirs.enter > mine.leave) return false;  // it came when this one had left
  if (!needsOnlyRoot(mine.operation)) return true;
  const auto members = members_.find(mine.communicator);
  if (members == members_.end() || mine.peer < 0 || static_cast<std::size_t>(mine.peer) >= members->second.size())
    return true;
  const Rank root = members->second[static_cast<std::size_t>(mine.peer)];
  return timeline_.ranks[waiting.rank].rank == root || timeline_.ranks[other.rank].rank == root;
}

WaitGraph::Readiness WaitGraph::readiness(Participant participant) const {
  const Nanoseconds own = callOf(participant).enter;
  for (const Participant other : matches_[rows_[participant.rank].matches[participant.call]]) {
    if (callOf(other).enter <= own) break;
    if (waitsFor(participant, other)) return {callOf(other).enter, other};
  }
  return {own, participant};
}

// The calls of a group share their span: the one whose partner came last held all of them up.
WaitGraph::Participant WaitGraph::blocking(Participant participant) const {
  const auto& calls = timeline_.ranks[participant.rank].calls;
  const TimelineCall& latest = calls[participant.call];
  const auto together = [&](const TimelineCall& call) {
    return call.enter == latest.enter && call.leave == latest.leave;
  };
  Participant worst = participant;
  Nanoseconds ready = readiness(participant).at;
  const auto consider = [&](std::size_t call) {
    const Nanoseconds at = readiness({participant.rank, call}).at;
    if (at <= ready) return;
    ready = at;
    worst.call = call;
  };
  for (std::size_t i = participant.call; i-- > 0 && together(calls[i]);) consider(i);
  for (std::size_t i = participant.call + 1; i < calls.size() && together(calls[i]); ++i) consider(i);
  return worst;
}

Rank WaitGraph::senderOf(Participant participant) const {
  const TimelineCall& call = callOf(participant);
  if (call.operation == Operation::send) return timeline_.ranks[participant.rank].rank;
  const auto members = members_.find(call.communicator);
  if (call.operation != Operation::receive || members == members_.end() || call.peer < 0 ||
      static_cast<std::size_t>(call.peer) >= members->second.size())
    return -1;
  return members->second[static_cast<std::size_t>(call.peer)];
}

PathPiece WaitGraph::transferPiece(Participant participant, Nanoseconds start, Nanoseconds end) const {
  const TimelineCall& call = callOf(participant);
  PathPiece piece{.kind = PathPiece::Kind::transfer,
                  .rank = timeline_.ranks[participant.rank].rank,
                  .from = senderOf(participant),
                  .communicator = call.communicator,
                  .context = rows_[participant.rank].contexts[participant.call],
                  .start = start,
                  .end = end};
  if (call.operation != Operation::send) return piece;
  // A message belongs to the one that receives it, whoever was seen to wait for it.
  const auto members = members_.find(call.communicator);
  if (members != members_.end() && call.peer >= 0 && static_cast<std::size_t>(call.peer) < members->second.size())
    piece.rank = members->second[static_cast<std::size_t>(call.peer)];
  return piece;
}

std::vector<PathPiece> WaitGraph::criticalPath() const {
  std::vector<PathPiece> path;
  // The rank whose last call ends last is the one at whose end the iterations end.
  std::optional<std::size_t> rank;
  Nanoseconds time{0};
  std::size_t calls = 0;
  for (std::size_t each = 0; each < rows_.size(); ++each) {
    calls += rows_[each].latest.size();
    for (const TimelineCall& call : timeline_.ranks[each].calls) {
      if (call.leave > timeline_.end || (rank && call.leave <= time)) continue;
      rank = each;
      time = call.leave;
    }
  }
  if (!rank) return path;

  const auto add = [&](PathPiece piece) {
    piece.start = std::max(piece.start, timeline_.start);
    if (piece.end > piece.start) path.push_back(piece);
  };
  std::uint64_t leadsTo = 0;  // context of the call that this rank entered next
  // Every turn goes back by a call of somebody; odd clocks must not make it turn for ever.
  for (std::size_t turn = 0; turn < 2 * calls + 2 && time > timeline_.start; ++turn) {
    const auto& own = timeline_.ranks[*rank].calls;
    const auto next = std::lower_bound(own.begin(), own.end(), time,
                                       [](const TimelineCall& call, Nanoseconds at) { return call.enter < at; });
    PathPiece outside{.rank = timeline_.ranks[*rank].rank, .context = leadsTo, .start = timeline_.start, .end = time};
    if (next == own.begin()) {
      add(outside);
      break;
    }
    const std::size_t latest = rows_[*rank].latest[static_cast<std::size_t>(next - own.begin()) - 1];
    outside.start = std::min(time, own[latest].leave);
    add(outside);
    time = outside.start;
    const Participant call = blocking({*rank, latest});
    const Readiness ready = readiness(call);
    const Nanoseconds until = std::min(ready.at, time);
    add(transferPiece(call, until, time));
    const Participant before = ready.at < time ? ready.last : call;
    time = ready.at < time ? ready.at : callOf(call).enter;
    rank = before.rank;
    leadsTo = rows_[before.rank].contexts[before.call];
  }
  return path;
}

std::vector<PathPiece> WaitGraph::allPieces() const {
  std::vector<PathPiece> pieces;
  for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
    const auto& calls = timeline_.ranks[rank].calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const TimelineCall& call = calls[i];
      if (call.enter < timeline_.start || call.leave > timeline_.end) continue;
      const Nanoseconds before = i > 0 ? calls[rows_[rank].latest[i - 1]].leave : timeline_.start;
      if (before < call.enter)
        pieces.push_back({.rank = timeline_.ranks[rank].rank,
                          .context = rows_[rank].contexts[i],
                          .start = std::max(before, timeline_.start),
                          .end = call.enter});
      pieces.push_back(transferPiece({rank, i}, readiness({rank, i}).at, call.leave));
    }
  }
  return pieces;
}

}  // namespace falcon::instrument
