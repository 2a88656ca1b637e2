#include "top/rank_load.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace falcon::top {

using instrument::RankSnapshot;

namespace {

/// When the first and the last caller came to a collective, or both ends to a message.
struct Meeting {
  Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min();
  int members = 0;
  int wanted = 0;
  bool complete() const { return members == wanted; }
};

/// The communicator, sender and receiver (-1 for collectives), the number.
using MeetingKey = std::tuple<CommunicatorId, Rank, Rank, std::uint64_t>;

MeetingKey keyOf(const CallRecord& call) {
  if (call.operation == Operation::send) return {call.communicator, call.rank, call.peer, call.sequence};
  if (call.operation == Operation::receive) return {call.communicator, call.peer, call.rank, call.sequence};
  return {call.communicator, -1, -1, call.sequence};
}

std::map<MeetingKey, Meeting> meetingsOf(std::span<const RankSnapshot> ranks) {
  std::map<CommunicatorId, int> sizes;
  for (const RankSnapshot& rank : ranks)
    for (const auto& communicator : rank.log.communicators) sizes[communicator.id] = communicator.size;
  std::map<MeetingKey, Meeting> meetings;
  for (const RankSnapshot& rank : ranks) {
    // One clock only.
    if (rank.log.identity.host != ranks.front().log.identity.host) continue;
    for (const CallRecord& call : rank.log.latest) {
      Meeting& meeting = meetings[keyOf(call)];
      meeting.first = std::min(meeting.first, call.enter);
      meeting.last = std::max(meeting.last, call.enter);
      ++meeting.members;
      meeting.wanted = isPointToPoint(call.operation) ? 2 : sizes[call.communicator];
    }
  }
  return meetings;
}

/// One call, or all of a group: they have the same times.
struct Stay {
  Nanoseconds enter{0}, leave{0};
  Nanoseconds until{0};  ///< the last one that it waited for had come
  bool known = true;
};

RankLoad loadOf(const RankSnapshot& rank, const std::map<MeetingKey, Meeting>& meetings, Nanoseconds window) {
  std::map<std::pair<std::uint32_t, Nanoseconds>, Stay> stays;
  RankLoad load;
  Nanoseconds begin = rank.now, lag{0};
  std::size_t calls = 0, compared = 0;
  for (const CallRecord& call : rank.log.latest) {
    if (call.enter < rank.now - window || call.leave > rank.now || call.leave < call.enter) continue;
    begin = std::min(begin, call.enter);
    ++calls;
    const auto meeting = meetings.find(keyOf(call));
    const bool known = meeting != meetings.end() && meeting->second.complete();
    Stay& stay = stays.try_emplace({call.thread, call.enter}, Stay{call.enter, call.leave, call.enter}).first->second;
    stay.known = stay.known && known;
    if (!known) continue;
    stay.until = std::max(stay.until, std::min(meeting->second.last, call.leave));
    if (isPointToPoint(call.operation)) continue;
    lag += call.enter - meeting->second.first;
    ++compared;
  }
  // Nobody knows yet how much of a call in flight is waiting.
  for (const CallRecord& call : rank.log.inFlight) {
    const Nanoseconds enter = std::max(call.enter, rank.now - window);
    begin = std::min(begin, enter);
    stays.try_emplace({call.thread, call.enter}, Stay{enter, rank.now, enter}).first->second.known = false;
  }
  if (begin >= rank.now) return load;
  Nanoseconds inside{0}, waiting{0}, transfer{0};
  for (const auto& [key, stay] : stays) {
    inside += stay.leave - stay.enter;
    if (!stay.known) continue;
    waiting += stay.until - stay.enter;
    transfer += stay.leave - stay.until;
  }
  load.span = seconds(rank.now - begin);
  load.callsPerSecond = static_cast<double>(calls) / load.span;
  load.inside = seconds(inside) / load.span;
  if (2 * (waiting + transfer) >= inside && inside > 0ns) {
    load.waiting = seconds(waiting) / load.span;
    load.transfer = seconds(transfer) / load.span;
  }
  if (compared > 0) load.lag = seconds(lag) / static_cast<double>(compared);
  return load;
}

}  // namespace

std::vector<RankLoad> loadsOf(std::span<const RankSnapshot> ranks, Nanoseconds window) {
  std::vector<RankLoad> loads;
  if (ranks.empty()) return loads;
  const auto meetings = meetingsOf(ranks);
  for (const RankSnapshot& rank : ranks) loads.push_back(loadOf(rank, meetings, window));
  return loads;
}

}  // namespace falcon::top
