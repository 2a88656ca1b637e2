// What ranks and groups take beside others that do the same, where there is no healthy baseline: in a job that is slow
// from its start. Measures only.
#pragma once

#include <span>
#include <vector>

#include "instrument/communicator_roles.h"
#include "instrument/profile.h"

namespace falcon::instrument {

/// One rank, some iterations.
struct RankNow {
  Rank rank = -1;  ///< of the job
  RankProfile profile;
};

/// Every rank beside what peers take, in place of a baseline: own time beside the median of ranks of equal work, a
/// group's time beside the median of groups of equal role, size and volume. Three are needed, or nothing can be said:
/// then own time is as it is now, and the group is missing. A group's time is what its least waiting member spends in
/// it, who comes last; it is waited for where the others of a group of equal work wait more than twice as long, and it
/// computes longer by that. Empty: fewer than three ranks.
/// Source of the two times: Falcon, arXiv 2410.12588, section 4.3.
std::vector<RankComparison> besidePeers(std::span<const RankNow> ranks,
                                        std::span<const CommunicatorShape> communicators);

}  // namespace falcon::instrument
