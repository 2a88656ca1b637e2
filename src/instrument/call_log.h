// The call log: one ring per process in shared memory, written by the call path without locks, read by the monitor and
// from outside (`falcon status`), also after the process has crashed.
//
// File format, version 1, little-endian: CallLogHeader, padded to headerBytes; then `capacity` slots of 64 bytes:
// a ticket (index + 1 of the record in the slot, 0 while it is being written), then the CallRecord, padded.
#pragma once

#include <atomic>
#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/call.h"
#include "base/result.h"

namespace falcon::instrument {

inline constexpr char callLogMagic[8] = {'F', 'A', 'L', 'C', 'O', 'N', 'C', 'L'};
inline constexpr std::uint32_t callLogVersion = 1;

/// What the controller is doing, as shown to operators.
enum class JobState : std::uint32_t { starting, tracking, profiling, validating, mitigating, off };
const char* nameOf(JobState state);

/// A request from outside the process, obeyed by its monitor within a fraction of a second.
enum class JobCommand : std::uint32_t { none, off };

/// At the start of the file. Plain fields are written once, atomics live.
struct CallLogHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t headerBytes;
  std::uint32_t slotBytes;
  std::uint32_t capacity;  ///< a power of two
  std::int32_t jobRank;
  std::int32_t worldSize;
  std::int64_t pid;
  double startWallTime;    ///< seconds since 1970
  std::int64_t startTime;  ///< steady clock, nanoseconds: the same clock as in the records
  char job[128];
  char host[64];
  std::atomic<std::uint64_t> head;        ///< records ever written
  std::atomic<std::uint32_t> state;       ///< JobState
  std::atomic<std::uint32_t> command;     ///< JobCommand
  std::atomic<std::uint32_t> controller;  ///< 1: this process is the job's controller
  std::atomic<std::uint32_t> held;        ///< 1: held by the trap
  std::atomic<std::int64_t> iterations;
  std::atomic<std::int64_t> iterationNanoseconds;  ///< the last one's duration
  std::atomic<std::uint32_t> failslowActive;
};

struct CallLogSlot {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> words[6];
  std::uint64_t unused;
};
static_assert(sizeof(CallLogSlot) == 64 && sizeof(CallRecord) == 6 * sizeof(std::uint64_t));

struct CallLogIdentity {
  std::string job;
  std::string host;
  Rank jobRank = -1;
  int worldSize = 0;
};

/// The writing end. record() is lock-free and may be called by any thread.
class CallLog {
 public:
  /// In the file `path` (created, mode 0600), or in private memory when `path` is empty.
  static Result<std::unique_ptr<CallLog>> create(const std::string& path, const CallLogIdentity& identity,
                                                 std::uint32_t capacity);

  void write(const CallRecord& record) noexcept;
  CallLogHeader& header() { return *header_; }
  /// At an end in order: gives the records' memory back. The header stays for `falcon status`. Nobody writes any more.
  void dropRecords();

  /// Appends the records from `next` on to `out`, at most `most` of them, and moves `next`. Returns how many were
  /// missed since they had been overwritten (an overrun of the log): then it goes on with the newest. For the one
  /// reader inside the process.
  std::uint64_t readFrom(std::uint64_t& next, std::vector<CallRecord>& out, std::size_t most) const;

 private:
  CallLog() = default;
  boost::interprocess::mapped_region region_;
  CallLogHeader* header_ = nullptr;
  CallLogSlot* slots_ = nullptr;
};

/// What an outsider sees of a call log: a copy, checked field by field; the file may be from a crash or hostile.
struct CallLogView {
  CallLogIdentity identity;
  std::int64_t pid = 0;
  double startWallTime = 0;
  JobState state = JobState::starting;
  bool controller = false;
  bool held = false;
  bool failslowActive = false;
  std::int64_t iterations = 0;
  double iterationSeconds = 0;
  std::uint64_t calls = 0;
  std::vector<CallRecord> latest;  ///< at most `wanted`, oldest first
};
Result<CallLogView> readCallLog(const std::string& path, std::size_t wanted);
/// Whether the process that wrote it still runs, on this host.
bool ownerIsAlive(const CallLogView& log);

/// Leaves a request for the process that owns the log.
Status sendCommand(const std::string& path, JobCommand command);

/// The folder of all jobs of this user, /dev/shm/nccl-falcon-<uid>, and of one job in it.
std::string jobsFolder();
std::string jobFolder(const std::string& job);

}  // namespace falcon::instrument
