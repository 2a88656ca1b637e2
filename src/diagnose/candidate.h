// Who may be to blame for a fail-slow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace falcon::diagnose {

enum class CandidateKind : std::uint8_t {
  rank,
  link,          ///< in one direction
  interfaceOut,  ///< all that leaves a network interface
  interfaceIn,   ///< all that comes in there
  group          ///< a communicator, whichever of its links it is
};

/// One of them. A fail-slow may have several at a time.
struct Candidate {
  CandidateKind kind = CandidateKind::rank;
  Rank rank = -1;  ///< kind rank; of the job
  Link link;       ///< kind link; job ranks
  /// Of an interface: those that use it. Members of a group; and of the one that a link was seen in before any test.
  std::vector<Rank> ranks;
  /// Somebody waits for it: it may be named. Others are there to explain what was measured.
  bool accusable = true;
  bool hasWholeDelay = false;  ///< kind rank: nothing of what iterations became longer by is left for others
  auto operator<=>(const Candidate&) const = default;
};

/// "rank 3", "link 0 -> 2", "the interface of rank 3, outwards", for people.
std::string nameOf(const Candidate& candidate);

}  // namespace falcon::diagnose
