// Who is slower than others that do the same, when there is no healthy baseline: a job that is slow from its start.
#pragma once

#include <span>

#include "instrument/communicator_roles.h"
#include "instrument/suspicion.h"

namespace falcon::instrument {

/// One rank, some iterations.
struct RankNow {
  Rank rank = -1;  ///< of the job
  RankProfile profile;
};

struct PeerRules {
  double computeGrowth = 1.2;   ///< own time against the median of ranks of equal work
  double transferGrowth = 1.1;  ///< a group's communication against the median of groups of equal role and volume
  double waitingGrowth = 2;     ///< waiting against transfer: from here on computing is to blame
  double leastShare = 0.05;     ///< of an iteration: less is nobody's fault
};

/// Ranks beside the ranks of equal work, groups beside groups of equal role, size and volume; three are needed, or
/// nothing can be said of them. A group's communication is what its least waiting member spends in it, who comes last.
/// Where the others of a group of equal work wait more than twice as long, and the last one computes longer by that, it
/// is suspected from 1.1 times the median on. A group with a suspected rank is explained by it.
/// Source: Falcon, arXiv 2410.12588, section 4.3 (1.1, 1.2 and 2 times).
Suspicion comparePeers(std::span<const RankNow> ranks, std::span<const CommunicatorShape> communicators,
                       const PeerRules& rules = {});

}  // namespace falcon::instrument
