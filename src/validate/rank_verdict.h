// Which ranks compute slowly. Pure.
#pragma once

#include <string>

#include "validate/verdict.h"

namespace falcon::validate {

struct SlowRank {
  Rank rank = -1;
  double slowdown = 1;  ///< how many times longer its work takes
  double confidence = 0;
  std::string evidence;  ///< "matrix products at ..."; without the rank's name
};

struct RankJudgement {
  /// Everybody whose links are to be judged with care.
  std::vector<SlowRank> namedAndSuspected() const;

  std::vector<SlowRank> slow;
  std::vector<SlowRank> suspected;  ///< look slow, not clearly enough to be named; their links look slow too
  double suspicion = 0;             ///< 0 to 1: how near the nearest rank came to being named
  std::string remark;               ///< about a rank that looked slow but was not named; may be empty
};

/// A rank is slow if
///  1. a quota held it back during the test, its peers less, and its own time grew beyond theirs; or
///  2. its compute test is slow and its own time grew, both beyond its peers and together beyond the scatter; or
///  3. its compute test alone is slow beyond doubt, where its own time is unknown or grew at least a little; or
///  4. its own time grew beyond doubt though its processor passes, and that is a good part of the delay: a cause
///  outside the library and the processor's speed. Beside a slow link the own time of ranks that compute little grows
///  by chance: 1.7 times was seen, of an eighth of the delay.
/// What the compute test lost by waiting for a core, not by the processor's speed, counts only as far as the rank's own
/// time grew with it: a core that was taken away for this half second says little (one of eight ranks got 0.4 of its
/// peers' share on a busy machine). Who is named comes with the cause that the kernel's counters tell, see cause.h.
/// "Beyond its peers" is against the median of all ranks (so a busy machine accuses nobody), by at least the
/// papers' 1.2. With two ranks the other one stands for the median; one alone is never judged without a baseline.
/// Source of 1.2: Falcon, arXiv 2410.12588, section 4.3. The factors of the scatter are ours: see rank_verdict.cc.
RankJudgement judgeRanks(const std::vector<RankFigures>& ranks);

/// The same, and the ranks whose GPU is slow by the rules of gpu_cause.h.
RankJudgement judgeProcessors(const VerdictInput& input);

}  // namespace falcon::validate
