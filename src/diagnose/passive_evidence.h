// What profiling saw of a running job, as observations: who takes longer than in its baseline, beyond what all do.
// Pure.
#pragma once

#include <span>
#include <vector>

#include "diagnose/candidate.h"
#include "diagnose/observation.h"
#include "diagnose/thresholds.h"
#include "instrument/profile.h"

namespace falcon::diagnose {

/// What has next to nothing of the delay is not observed.
struct PassiveEvidence {
  std::vector<Observation> observations;
  /// Links with most of the delay come first. Of a group with timing a link is to blame; the group itself, where all
  /// wait and nothing seems to move slowly, only explains: who receives what somebody else holds up waits, too.
  std::vector<Candidate> candidates;
  double usualGrowth = 1;  ///< of own time, of the middle one of all ranks
};

/// - A rank's own time, beyond what all ranks' did (a busy neighbour of all is nobody).
/// - A group's time is what its least waiting member spends in it: the last one to come waits for nobody.
/// - With per-channel timing, the seconds a byte in which a group's bytes are in flight, link by link, where its time
///   grew beyond what its slow members explain, however little that is beside the group's time. Bytes in flight alone
///   are no evidence: on shared cores they also count as in motion while their receiver is not there.
///
/// @param ranks  every rank whose baseline is known; ranks that never left the library between calls have own = 0
PassiveEvidence passiveEvidenceOf(std::span<const instrument::RankComparison> ranks,
                                  std::span<const instrument::CommunicatorMembers> communicators,
                                  const SuspicionThresholds& thresholds);

}  // namespace falcon::diagnose
