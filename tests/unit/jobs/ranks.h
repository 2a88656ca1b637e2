// Ranks of a made-up job: all on one host, in one communicator, with a clock that starts at 100 s.
#pragma once

#include <vector>

#include "instrument/rank_snapshot.h"

namespace falcon::tests {

inline constexpr CommunicatorId world = 0xabc;

struct MadeUpJob {
  explicit MadeUpJob(int size, Nanoseconds now = 110s) {
    for (Rank rank = 0; rank < size; ++rank) {
      instrument::RankSnapshot snapshot;
      snapshot.now = now;
      snapshot.log.identity = {"job", "host", rank, size};
      snapshot.log.pid = 1000 + rank;
      snapshot.log.startTime = 99s;
      snapshot.log.startWallTime = 1'700'000'000;
      instrument::CommunicatorView view;
      view.id = world;
      view.rank = rank;
      view.size = size;
      view.live = true;
      view.name = "dp";
      for (Rank other = 0; other < size; ++other) view.members.push_back({other, 0, 0, 0});
      snapshot.log.communicators.push_back(view);
      ranks.push_back(std::move(snapshot));
    }
  }

  static CallRecord made(Operation operation, Rank rank, Rank peer, std::uint64_t sequence, Nanoseconds enter) {
    CallRecord call;
    call.communicator = world;
    call.operation = operation;
    call.count = 100;
    call.rank = rank;
    call.peer = peer;
    call.sequence = sequence;
    call.enter = enter;
    call.thread = static_cast<std::uint32_t>(1000 + rank);
    return call;
  }
  CallRecord& finished(Operation operation, Rank rank, Rank peer, std::uint64_t sequence, Nanoseconds enter,
                       Nanoseconds leave) {
    CallRecord call = made(operation, rank, peer, sequence, enter);
    call.leave = leave;
    count(call);
    ranks[rank].log.latest.push_back(call);
    ++ranks[rank].log.calls;
    return ranks[rank].log.latest.back();
  }
  CallRecord& inFlight(Operation operation, Rank rank, Rank peer, std::uint64_t sequence, Nanoseconds enter) {
    const CallRecord call = made(operation, rank, peer, sequence, enter);
    count(call);
    ranks[rank].log.inFlight.push_back(call);
    return ranks[rank].log.inFlight.back();
  }

  std::vector<instrument::RankSnapshot> ranks;

 private:
  void count(const CallRecord& call) {
    auto& view = ranks[call.rank].log.communicators[0];
    view.lastEnter = call.enter;
    if (call.operation == Operation::send)
      view.members[call.peer].sent = call.sequence + 1;
    else if (call.operation == Operation::receive)
      view.members[call.peer].received = call.sequence + 1;
    else
      view.collectives = call.sequence + 1;
  }
};

}  // namespace falcon::tests
