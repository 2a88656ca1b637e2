// The range log: where a rank's own code spends its time (forward, backward, data loading, checkpoint), as the
// application says by ncclFalconRangeBegin/End or by NVTX. A ring in shared memory beside the call log.
//
// File format, version 2, little-endian: RangeLogHeader, padded to headerBytes, with the table of names and the ranges
// that are open now (0: a free place, 1: it is being written, else 2 + name | (depth + 1) << 32); then
// `capacity` slots of 32 bytes: a ticket (base/overwriting_ring.h), the index of the name and the depth, and when the
// range began and ended (the clock of the call log).
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"

namespace falcon::instrument {

inline constexpr char rangeLogMagic[8] = {'F', 'A', 'L', 'C', 'O', 'N', 'R', 'G'};
inline constexpr std::uint32_t rangeLogVersion = 2;

struct RangeLogHeader {
  static constexpr std::uint32_t mostNames = 64, nameBytes = 40, mostOpen = 16;
  struct Name {
    char text[nameBytes];
    std::atomic<std::int64_t> nanoseconds;  ///< in the last iteration
    std::atomic<std::uint32_t> times;       ///< in the last iteration
    std::atomic<std::uint32_t> ready;       ///< 1: `text` is complete
  };
  struct Open {
    std::atomic<std::uint64_t> what;
    std::atomic<std::int64_t> begin;
    std::atomic<std::uint32_t> thread;  ///< the kernel's number
  };
  char magic[8];
  std::uint32_t version;
  std::uint32_t headerBytes;
  std::uint32_t slotBytes;
  std::uint32_t capacity;  ///< a power of two
  std::int32_t jobRank;
  std::uint32_t unused;
  std::int64_t pid;
  std::atomic<std::uint64_t> head;   ///< records ever written
  std::atomic<std::uint32_t> names;  ///< used entries of `name`; may be more than mostNames for a moment
  Name name[mostNames];
  Open open[mostOpen];
};

struct RangeSlot {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> what;  ///< name | depth << 32
  std::atomic<std::int64_t> begin, end;
};
static_assert(sizeof(RangeSlot) == 32);

struct RangeRecord {
  std::uint32_t name = 0;
  std::uint32_t depth = 0;  ///< ranges of the same thread around it
  Nanoseconds begin{0}, end{0};
};

class RangeLog {
 public:
  static constexpr std::uint32_t slots = 4096;

  /// In the file `path` (made anew, mode 0600), or in private memory when it is empty.
  static Result<std::unique_ptr<RangeLog>> create(const std::string& path, Rank jobRank);

  /// The number of a name; names beyond the table's end share its last number ("other"), and so does a new name where
  /// the table has `most` already. Lock-free unless the name is new. Any thread.
  std::uint32_t nameOf(std::string_view name, std::uint32_t most = RangeLogHeader::mostNames) noexcept;
  /// Lock-free, any thread.
  void write(const RangeRecord& record) noexcept;
  /// Outsiders see the range as open until hideOpen() is given what this returns, which is noPlace where so many are
  /// open already. `range.end` is not looked at. Lock-free, any thread.
  int showOpen(const RangeRecord& range, std::uint32_t thread) noexcept;
  void hideOpen(int place) noexcept;
  static constexpr int noPlace = -1;

  /// Appends what was written from `next` on and moves `next`; what was overwritten is left out. For the one reader
  /// inside the process.
  void readFrom(std::uint64_t& next, std::vector<RangeRecord>& out) const;
  std::string text(std::uint32_t name) const;
  /// What `falcon status` shows.
  void showLast(std::uint32_t name, Nanoseconds time, std::uint32_t times) noexcept;
  /// At an end in order: gives the records' memory back.
  void dropRecords();

 private:
  RangeLog() = default;
  boost::interprocess::mapped_region region_;
  RangeLogHeader* header_ = nullptr;
  RangeSlot* slots_ = nullptr;
  std::atomic_flag naming_ = ATOMIC_FLAG_INIT;
};

/// A range that has begun and not ended.
struct OpenRange {
  std::string name;
  std::uint32_t depth = 0;   ///< ranges of the same thread around it
  std::uint32_t thread = 0;  ///< the kernel's number
  Nanoseconds begin{0};      ///< by the clock of the call log
};

/// What an outsider sees: a copy, checked; the file may be from a crash or hostile.
struct RangeLogView {
  struct Name {
    std::string text;
    Nanoseconds inLastIteration{0};
    std::uint32_t times = 0;
  };
  Rank jobRank = -1;
  std::int64_t pid = 0;
  std::uint64_t ranges = 0;  ///< ever written
  std::vector<Name> names;
  std::vector<OpenRange> open;      ///< by thread, the outermost first
  std::vector<RangeRecord> latest;  ///< at most `wanted`, oldest first; names index `names`
};
Result<RangeLogView> readRangeLog(const std::string& path, std::size_t wanted);

}  // namespace falcon::instrument
