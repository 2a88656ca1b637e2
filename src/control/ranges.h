// The process's ranges, from any thread, whether Falcon is on or not: ncclFalconRangeBegin/End, and NVTX's.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "instrument/range_log.h"
#include "instrument/range_name.h"

namespace falcon::control {

/// Thread-safe. Where no job of Falcon's runs, all do nothing: one branch.
class Ranges {
 public:
  static void begin(const char* name);
  /// Ends the calling thread's newest range that begin() began. Invalid usage: there is none.
  static Status end();

  // NVTX's, which come in any number: what is too deep, too often or open too long is left out, silently.

  /// A thread's ranges of one domain nest; those of different domains need not. Only the outermost `levels` are
  /// recorded: of the others the caller need not know the name (null).
  static constexpr int levels = 4;
  static bool isShallow() noexcept;
  static void push(const void* domain, instrument::RangeName* name) noexcept;
  static void pop(const void* domain) noexcept;

  /// Ranges that any thread may end, by the number that start() gives; 0: it is not recorded, for instance because
  /// `mostStarted` are open.
  static constexpr std::uint32_t mostStarted = 256;
  static std::uint64_t start(instrument::RangeName* name) noexcept;
  static void stop(std::uint64_t range) noexcept;

  /// True where there is a log: whether it is worth to look at a name.
  static bool areRecorded() noexcept;

  /// The job's log, from now on; null: none. False: some thread may still be writing to the former one, which must
  /// stay.
  static bool useLog(instrument::RangeLog* log);
  /// After a fork: the log is the parent's.
  static void childBegins();
};

}  // namespace falcon::control
