// Which rank, link or group iterations became longer for: the critical path now, beside what its pieces took when all
// was well.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "instrument/profile.h"
#include "instrument/timeline.h"

namespace falcon::instrument {

/// Something that the job waits for longer than it used to.
struct DelaySource {
  enum class Kind : std::uint8_t {
    rank,      ///< outside of the library
    link,      ///< a message on its way, both ends being there
    group,     ///< a collective in which everybody has arrived
    everybody  ///< all ranks alike: a busy machine, longer sequences
  };
  Kind kind = Kind::rank;
  Rank rank = -1;                   ///< of the job
  Link link;                        ///< job ranks
  CommunicatorId communicator = 0;  ///< of a link or group
  double seconds = 0;               ///< that an iteration is longer for it
  double share = 0;                 ///< of what an iteration is longer
  double growth = 1;                ///< of its pieces on the path, against their healthy time
  /// Of a rank: one stretch of its code grew and the others did not, so that its processor is hardly to blame. Data
  /// loading, a checkpoint, garbage collection look like this.
  bool oneStretch = false;
};

struct Blame {
  double healthySeconds = 0;         ///< an iteration
  double seconds = 0;                ///< an iteration now
  std::vector<DelaySource> sources;  ///< worst first; empty: nobody stands out
  double unexplainedShare = 0;       ///< of the lengthening
};

struct BlameRules {
  double leastShare = 0.05;  ///< of a healthy iteration: less cannot be a source
  double leastPart = 0.1;    ///< of the lengthening: likewise
  double leastGrowth = 1.1;  ///< of a source's pieces. Source: Falcon, arXiv 2410.12588, section 4.3
  /// A piece counts as long as it takes in the middle iteration: for what lasts, and is small beside what happens once.
  bool lasting = false;
};

/// Follows the chain of waiting through all communicators to its sources (WaitGraph), and compares every piece of it
/// with the median of the same piece in healthy iterations: of the same rank, before or in the same call. Pieces that
/// touch a rank which computes more slowly are expected to be slower by as much: compute explains links away.
///
/// @param healthy, now  some whole iterations each, of the same ranks
Blame blame(const JobTimeline& healthy, const JobTimeline& now, std::span<const CommunicatorMembers> members,
            const BlameRules& rules = {});

/// 1: below 15 %, 2: below 30 %, 3: below 60 %, 4: the rest. Source: Falcon, arXiv 2410.12588.
int severityOf(double healthySeconds, double slowSeconds);

}  // namespace falcon::instrument
