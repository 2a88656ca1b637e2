// What an outsider sees of a call log: a copy, checked field by field; the file may be from a crash, cut or hostile.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "instrument/call_log.h"

namespace falcon::instrument {

struct MemberView {
  Rank jobRank = -1;  ///< -1: unknown
  int node = 0;
  std::uint64_t sent = 0, received = 0;  ///< messages entered so far, to it and from it
};

struct CommunicatorView {
  CommunicatorId id = 0;
  Rank rank = -1;
  int size = 0;
  int device = 0;
  bool vendor = false;
  bool live = false;                  ///< false: destroyed or aborted
  std::uint64_t collectives = 0;      ///< entered so far
  Nanoseconds lastEnter{0};           ///< 0: no call yet
  std::string name;                   ///< "" where it has none
  std::vector<MemberView> members;    ///< by rank; empty where they are not known
  std::optional<CallRecord> failure;  ///< the first call that ended with an error; `leave` means nothing
};

/// A communicator that was being made.
struct MakingView {
  MakingKind kind = MakingKind::init;
  std::uint64_t key = 0;  ///< the same on all ranks that make it: of the unique id, or the parent's id
  Rank rank = -1;         ///< of this process, in it; for a part, in the parent
  int size = 0;
  Nanoseconds enter{0};
  bool met = false;           ///< all ranks have come
  std::string name;           ///< "" where it has none
  std::vector<Rank> arrived;  ///< that have come so far, rising; empty where this process does not know
};

struct CallLogView {
  CallLogIdentity identity;
  std::int64_t pid = 0;
  double startWallTime = 0;  ///< seconds since 1970
  Nanoseconds startTime{0};  ///< the same moment on the records' clock
  JobState state = JobState::starting;
  bool controller = false;
  bool held = false;
  bool ended = false;  ///< the process has left the job in order
  bool failslowActive = false;
  Nanoseconds heartbeat{0};
  std::int64_t iterations = 0;
  double iterationSeconds = 0;
  std::uint64_t calls = 0;
  std::uint64_t flightsMissed = 0;
  std::vector<CommunicatorView> communicators;  ///< those in use, and some that are gone
  std::vector<MakingView> makings;              ///< communicators that are being made
  std::vector<CallRecord> inFlight;             ///< entered and not left; `leave` means nothing
  std::vector<CallRecord> latest;               ///< at most `wanted`, oldest first
  std::vector<LabelledCall> labelled;           ///< the newest that have labels, oldest first
  std::vector<TransferTiming> transfers;        ///< the newest while per-channel timing was on, oldest first
};

/// The newest `wanted` records, none older than number `from`. `bytes` are aligned to 8; `name` is for messages.
/// Errors (invalidArgument): not a call log, another version, or damaged.
Result<CallLogView> viewOf(std::span<const std::byte> bytes, const std::string& name, std::size_t wanted,
                           std::uint64_t from = 0);
Result<CallLogView> readCallLog(const std::string& path, std::size_t wanted, std::uint64_t from = 0);
/// Whether the process that wrote it still runs, on this host.
bool ownerIsAlive(const CallLogView& log);

/// Leaves a request for the process that owns the log.
Status sendCommand(const std::string& path, JobCommand command, std::uint32_t argument = 0);

}  // namespace falcon::instrument
