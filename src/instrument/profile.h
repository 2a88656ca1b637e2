// What a rank did with its time over a few iterations: the input of a suspicion. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace falcon::instrument {

/// Inside the library for one communicator, seconds an iteration.
struct CommunicatorTime {
  CommunicatorId communicator = 0;
  double seconds = 0;
};

/// One connection on one channel, per iteration.
struct TransferProfile {
  CommunicatorId communicator = 0;
  Rank peer = -1;  ///< rank of the communicator
  int channel = 0;
  bool sending = false;
  double bytes = 0;
  double moving = 0;   ///< seconds data were in flight or being copied
  double waiting = 0;  ///< seconds for the other end
};

/// Means over a few iterations of one rank.
struct RankProfile {
  double own = 0;        ///< seconds outside of the library, an iteration, at the same work in both profiles compared
  double inLibrary = 0;  ///< seconds an iteration
  std::vector<CommunicatorTime> communicators;
  std::vector<TransferProfile> transfers;  ///< empty: per-channel timing was off
};

/// A rank now, beside its own healthy baseline.
struct RankComparison {
  Rank rank = -1;  ///< of the job
  RankProfile healthy;
  RankProfile now;
  bool waitedFor = false;  ///< partners of equal work wait for it, as long as it is outside of the library beyond them
};

struct CommunicatorMembers {
  CommunicatorId communicator = 0;
  std::vector<Rank> members;  ///< job ranks by rank of the communicator
  std::string name{};         ///< as CommunicatorNames::membersOf has it; "": the ranks alone
  /// The vendor's: what goes over its network is timed, and what goes within a host is not.
  bool partlyTimed = false;
};

}  // namespace falcon::instrument
