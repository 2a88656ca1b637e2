#include "instrument/rank_snapshot.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "base/clock.h"

namespace falcon::instrument {

std::string statOf(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // The program's name may hold anything, brackets too.
  const std::size_t end = line.rfind(')');
  return end == std::string::npos || end + 2 >= line.size() ? "" : line.substr(end + 2);
}

const char* nameOf(ProcessState state) {
  constexpr const char* names[processStateCount] = {"alive", "blocked", "stopped", "dead", "ended"};
  return static_cast<std::uint32_t>(state) < processStateCount ? names[static_cast<std::uint32_t>(state)] : "unknown";
}

bool RankSnapshot::severalRanks() const {
  std::set<CommunicatorId> seen;
  for (const CommunicatorView& communicator : log.communicators)
    if (communicator.live && !seen.insert(communicator.id).second) return true;
  return false;
}

bool allGone(std::span<const RankSnapshot> ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankSnapshot& rank) { return isGone(rank.process); });
}

ProcessState processStateOf(const CallLogView& log) {
  if (log.ended) return ProcessState::ended;
  if (!ownerIsAlive(log)) return ProcessState::dead;
  switch (statOf(log.pid)[0]) {
    case 'T':
    case 't':
      return ProcessState::stopped;
    case 'Z':
    case 'X':
      return ProcessState::dead;
    case 'D':
      return ProcessState::blocked;
    default:
      return ProcessState::alive;  // also where /proc is not to be had
  }
}

Nanoseconds lastSignOf(const CallLogView& log) {
  Nanoseconds last = std::max(log.heartbeat, log.startTime);
  for (const CallRecord& call : log.inFlight) last = std::max(last, call.enter);
  for (const MakingView& making : log.makings) last = std::max(last, making.enter);
  for (const CallRecord& call : log.latest) last = std::max(last, call.leave);
  return last;
}

RankSnapshot snapshotOf(CallLogView log) {
  RankSnapshot snapshot;
  snapshot.process = processStateOf(log);
  snapshot.now = isGone(snapshot.process) ? lastSignOf(log) : SystemClock::instance().now();
  snapshot.log = std::move(log);
  return snapshot;
}

}  // namespace falcon::instrument
