// A fail-slow that has been named.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/event.h"
#include "control/link_relief.h"
#include "control/relief_watch.h"

namespace falcon::control {

struct FailSlow {
  std::uint64_t id = 0;  ///< never given twice: what speaks of a fail-slow later may find it gone
  Culprit culprit;
  double healthyMilliseconds = 0;
  double slowMilliseconds = 0;
  double lossSeconds = 0;  ///< what the job has lost since the onset
  /// A plan of ours came into force since: the iteration time no longer tells of this culprit's relief, only its own
  /// figure does.
  bool masked = false;
  /// The job became faster since, but not as fast as it was: whether it is over, its own figure tells.
  bool eased = false;
  std::optional<ReliefWatch> watch;  ///< of a slow rank: growth of its own time against its peers'
  LinkRelief linkRelief;             ///< of a slow link
  std::uint64_t watchedSamples = 0;  ///< of a slow rank, already seen by the watch
  Nanoseconds probed{0};             ///< a slow link, the last time
  /// What had been received of each process when the culprit was first seen to have left the job.
  std::optional<std::map<ProcessId, std::uint64_t>> goneSince{};
};

}  // namespace falcon::control
