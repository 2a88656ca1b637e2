// ncclFalconRangeBegin/End: the process's ranges, from any thread, whether Falcon is on or not.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "instrument/range_log.h"

namespace falcon::control {

/// Thread-safe. Where no job of Falcon's runs, both do nothing: one branch.
class Ranges {
 public:
  static void begin(const char* name);
  /// Ends the calling thread's newest range. Invalid usage: there is none.
  static Status end();

  /// The job's log, from now on; null: none. False: some thread may still be writing to the former one, which must
  /// stay.
  static bool useLog(instrument::RangeLog* log);
  /// After a fork: the log is the parent's.
  static void childBegins();
};

}  // namespace falcon::control
