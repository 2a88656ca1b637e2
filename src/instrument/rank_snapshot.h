// A rank as seen from outside at one moment: its call log, and how its process is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "instrument/call_log_view.h"
#include "instrument/range_log.h"

namespace falcon::instrument {

enum class ProcessState : std::uint32_t {
  alive,
  blocked,  ///< in the kernel, uninterruptible
  stopped,  ///< by a signal or a debugger
  dead,     ///< gone without leaving the job
  ended     ///< has left the job in order
};
inline constexpr std::uint32_t processStateCount = 5;
/// "alive", "blocked" ...
const char* nameOf(ProcessState state);
constexpr bool isGone(ProcessState state) {
  return state == ProcessState::dead || state == ProcessState::ended;
}
/// Others may wait for it for that.
constexpr bool isBroken(ProcessState state) {
  return isGone(state) || state == ProcessState::stopped;
}

struct RankSnapshot {
  CallLogView log;
  ProcessState process = ProcessState::alive;
  /// By Falcon; what the log of one that is gone says was so when it went.
  bool isHeld() const { return log.held && !isGone(process); }
  /// The moment on the records' clock; of a process that is gone, that of its last sign of life.
  Nanoseconds now{0};
  /// The application's ranges that are open, as RangeLogView has them; of a recording none are known.
  std::vector<OpenRange> ranges;

  /// The process has several ranks of one communicator, as threads.
  bool severalRanks() const;
};

/// Of none of these there is a process.
bool allGone(std::span<const RankSnapshot> ranks);

/// The fields of /proc/<pid>/stat behind the program's name: the state's letter first, 19 fields later the start. Empty
/// where there is no such process.
std::string statOf(std::int64_t pid);

/// Looks at the process that wrote `log`; it must be on this host.
ProcessState processStateOf(const CallLogView& log);
/// The log's last sign of life: of its monitor, or of a call.
Nanoseconds lastSignOf(const CallLogView& log);
/// A snapshot of now.
RankSnapshot snapshotOf(CallLogView log);

}  // namespace falcon::instrument
