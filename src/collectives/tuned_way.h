// How a collective is done where a tuner plugin has something to say.
#pragma once

#include <optional>

#include "collectives/call_plan.h"
#include "plugin/tuner/tuner_directory.h"

namespace falcon::collectives {

/// What a tuner wants of one call; acts as NCCL_ALGO and the number of channels do.
struct TunedWay {
  std::uint8_t preferred = PreferenceMasks::everything;  ///< of algorithmWords(), one bit; everything: no choice
  int channels = 0;                                      ///< within what the communicator has; 0: no wish

  bool choosesAlgorithm() const { return preferred != PreferenceMasks::everything; }
};

/// The table of costs that a tuner gets, in microseconds: Ring, and Tree where the operation has it, with Simple, as
/// far as NCCL_ALGO allows. All else has no NCCL name, or is not here. False: the operation is not tuned.
bool costsOf(const MemberShape& shape, const Call& call, plugin::CostTable& costs);

/// What has become of the costs `offered`. A table that is as it was chooses nothing; what was not offered is never
/// chosen. Pure.
TunedWay wayOf(const plugin::CostTable& offered, const plugin::CostTable& tuned, int channels, int mostChannels);

/// Asks. All ranks of the communicator ask for every one of its collectives, and must be told the same: so it is with
/// NCCL.
TunedWay tunedWay(const plugin::TunerSession& tuner, const MemberShape& shape, const Call& call);

/// What it means over connections.
inline Way chooseWay(const MemberShape& shape, const Call& call, const TunedWay& tuned) {
  return chooseWay(shape, call, tuned.choosesAlgorithm() ? tuned.preferred : shape.preferred[call.operation],
                   tuned.channels);
}

}  // namespace falcon::collectives
