// The calls of all ranks on one clock. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/call.h"
#include "base/clock.h"
#include "base/types.h"

namespace falcon::instrument {

/// One finished call. Times are of the job's common clock.
struct TimelineCall {
  CommunicatorId communicator = 0;
  Operation operation = Operation::allReduce;
  Rank peer = -1;              ///< as in CallRecord
  std::uint64_t sequence = 0;  ///< as in CallRecord
  std::uint64_t bytes = 0;
  Nanoseconds enter{0};
  Nanoseconds leave{0};
};

struct RankTimeline {
  Rank rank = -1;                   ///< of the job
  std::vector<TimelineCall> calls;  ///< in the order they were entered
};

/// The ranks' calls over some whole iterations.
struct JobTimeline {
  std::vector<RankTimeline> ranks;
  Nanoseconds start{0}, end{0};  ///< the iterations lie between; calls before `start` may be there too
  int iterations = 1;            ///< at least 1
};

}  // namespace falcon::instrument
