// The call log: one file per process in shared memory, written by the call path without locks, read by the monitor and
// from outside (call_log_view.h), also after the process has crashed. It holds the calls in flight, the finished ones
// (a ring) and what is known of the communicators.
#pragma once

#include <boost/interprocess/mapped_region.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/recorders.h"
#include "base/result.h"
#include "instrument/call_log_format.h"
#include "instrument/making.h"

namespace falcon::instrument {

struct CallLogIdentity {
  std::string job;
  std::string host;
  Rank jobRank = -1;
  int worldSize = 0;
};

struct MemberEntry {
  Rank jobRank = -1;  ///< -1: unknown
  int node = 0;
};

/// A communicator as the log keeps it.
struct CommunicatorEntry {
  CommunicatorId id = 0;
  Rank rank = -1;  ///< this process's
  int device = 0;
  bool vendor = false;
  std::string name;
  std::vector<MemberEntry> members;  ///< by rank
};

/// The writing end. enter(), leave() and fail() are lock-free and may be called by any thread.
class CallLog final : public CallRecorder {
 public:
  /// In the file `path` (created, mode 0600), or in private memory when `path` is empty. `capacity`, a power of two, is
  /// of the ring.
  static Result<std::unique_ptr<CallLog>> create(const std::string& path, const CallLogIdentity& identity,
                                                 std::uint32_t capacity);

  /// Gives the place for enter(); noPlace where there is no room: its calls are logged without it.
  int add(const CommunicatorEntry& communicator);
  void remove(CommunicatorId id, Rank rank);

  /// Shows a communicator that is being made, until the result is gone; nothing is shown where there is no room.
  /// `owner`: of this log.
  Making making(const MakingEntry& entry, std::shared_ptr<const void> owner = nullptr) {
    return Making(makings_, entry, std::move(owner));
  }

  using CallRecorder::enter;
  Flight enter(CallingThread& thread, CallRecord& call, int place) noexcept override;
  void leave(Flight flight, const CallRecord& call) noexcept override;
  void fail(Flight flight, const CallRecord& call, int place) noexcept override;
  void label(const LabelledCall& call) noexcept override;

  /// Appends a finished call to the ring.
  void write(const CallRecord& record) noexcept;
  /// The same for a transfer, to its own ring.
  void write(const TransferTiming& transfer) noexcept;
  CallLogHeader& header() { return *header_; }
  /// At an end in order: gives the records' memory back, unless a call failed. The rest stays for `falcon status`.
  /// Nobody writes any more.
  void dropRecords();

  /// Appends the records from `next` on to `out`, at most `most` of them, and moves `next`. Returns how many were
  /// missed since they had been overwritten (an overrun of the log): then it goes on with the newest. For the one
  /// reader inside the process.
  std::uint64_t readFrom(std::uint64_t& next, std::vector<CallRecord>& out, std::size_t most) const;

 private:
  CallLog() = default;
  void land(Flight flight) noexcept;
  void layOut(std::uint32_t capacity);
  void introduce(CallingThread& thread) const noexcept;
  std::uint32_t roomForMembers(std::uint32_t wanted) const;

  boost::interprocess::mapped_region region_;
  CallLogHeader* header_ = nullptr;
  CallLogSlot* slots_ = nullptr;
  CallLogSlot* flights_ = nullptr;
  CommunicatorSlot* communicators_ = nullptr;
  MemberSlot* members_ = nullptr;
  TransferSlot* transfers_ = nullptr;
  LabelSlot* labels_ = nullptr;
  std::span<MakingSlot> makings_;
  std::atomic<std::uint64_t> transfersWritten_{0}, labelsWritten_{0};
  std::uint64_t stamp_ = 0;  ///< tells logs apart, also those of a forked child
  std::mutex communicatorsMutex_;
};

/// The folder of all jobs of this user, /dev/shm/nccl-falcon-<uid>, and of one job in it.
std::string jobsFolder();
std::string jobFolder(const std::string& job);

}  // namespace falcon::instrument
