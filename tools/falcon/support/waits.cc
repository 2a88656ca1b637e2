#include "support/waits.h"

#include <algorithm>
#include <tuple>

namespace falcon::support {
namespace {

struct Entry {
  Rank rank = -1;
  Nanoseconds enter{0}, leave{0};
};
using Collective = std::tuple<CommunicatorId, std::uint64_t, Operation>;
using Message = std::tuple<CommunicatorId, Rank, Rank, std::uint64_t>;  ///< from, to: job ranks

class Waits {
 public:
  explicit Waits(const instrument::JobTimeline& timeline) : start_(timeline.start), end_(timeline.end) {}

  void add(const Entry& waiting, const Entry& awaited) {
    const Nanoseconds from = std::max(waiting.enter, start_);
    const Nanoseconds to = std::min({awaited.enter, waiting.leave, end_});
    if (to > from) shares_[{waiting.rank, awaited.rank}] += seconds(to - from) / seconds(end_ - start_);
  }
  std::map<std::pair<Rank, Rank>, double> take() { return std::move(shares_); }

 private:
  const Nanoseconds start_, end_;
  std::map<std::pair<Rank, Rank>, double> shares_;
};

}  // namespace

std::map<std::pair<Rank, Rank>, double> waitsOf(const instrument::JobTimeline& timeline, const MembersOf& members) {
  std::map<Collective, std::vector<Entry>> collectives;
  std::map<Message, std::pair<Entry, Entry>> messages;  // send, receive
  for (const auto& rank : timeline.ranks) {
    for (const auto& call : rank.calls) {
      const Entry entry{rank.rank, call.enter, call.leave};
      const auto known = members.find(call.communicator);
      if (known == members.end()) continue;
      if (!isPointToPoint(call.operation)) {
        collectives[{call.communicator, call.sequence, call.operation}].push_back(entry);
        continue;
      }
      if (call.peer < 0 || static_cast<std::size_t>(call.peer) >= known->second.size()) continue;
      const Rank peer = known->second[static_cast<std::size_t>(call.peer)];
      const bool sends = call.operation == Operation::send;
      auto& pair = messages[{call.communicator, sends ? rank.rank : peer, sends ? peer : rank.rank, call.sequence}];
      (sends ? pair.first : pair.second) = entry;
    }
  }
  Waits waits(timeline);
  for (const auto& [key, entries] : collectives) {
    if (entries.size() != members.at(std::get<0>(key)).size()) continue;
    const Entry last = *std::max_element(entries.begin(), entries.end(),
                                         [](const Entry& a, const Entry& b) { return a.enter < b.enter; });
    for (const Entry& entry : entries)
      if (entry.rank != last.rank) waits.add(entry, last);
  }
  for (const auto& [key, pair] : messages) {
    if (pair.first.rank < 0 || pair.second.rank < 0) continue;
    waits.add(pair.first, pair.second);
    waits.add(pair.second, pair.first);
  }
  return waits.take();
}

}  // namespace falcon::support
