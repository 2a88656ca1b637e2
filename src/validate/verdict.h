// Who is to blame, from what was measured while the job was held and what profiling saw before. Pure; rules in
// rank_verdict.h and link_verdict.h.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/event.h"
#include "validate/cause.h"
#include "validate/figures.h"
#include "validate/gpu_sample.h"
#include "validate/link_measurement.h"

namespace falcon::validate {

/// What is known of one rank; NaN where nothing is. Ranks are the job's.
struct RankFigures {
  Rank rank = -1;
  double score = unknown;           ///< compute test: work per wall time, in any unit that all ranks share
  double baselineScore = unknown;   ///< the same when the rank was healthy
  double throttledShare = unknown;  ///< of the compute test's span, in which a quota held the rank back: 0 to 1
  double memoryRate = unknown;      ///< bytes per second that it moves
  CauseEvidence evidence;           ///< of the compute test, but for its slowness
  double ownTimeGrowth = unknown;   ///< time outside the library (per micro-batch), now over healthy: 1 is unchanged
  /// What its own time grew by beyond its peers' growth, over what iterations became longer by.
  double shareOfDelay = unknown;
};

/// What the job does with the links that were tested: none that nobody waits for is to blame, however slow its test
/// was.
struct LinkUse {
  std::set<Link> onlyCompared;    ///< tested for others to be compared with
  std::map<Link, double> moving;  ///< seconds an iteration in which bytes moved, as far as profiling saw them
  /// Seconds an iteration in which bytes moved beyond what as many took in health. Only links whose healthy time is
  /// known.
  std::map<Link, double> grown;
  double longerIteration = unknown;  ///< seconds that an iteration takes more than in health
};

struct VerdictInput {
  std::vector<RankFigures> ranks;
  /// The tests of the GPUs, by the rank that uses them. Empty without GPUs.
  std::map<Rank, GpuSample> gpus;
  /// All measurements of this validation; a link that was measured several times is there several times.
  std::vector<LinkMeasurement> links;
  LinkUse use;
  /// Bytes per second that links gave when they were healthy, as far as known.
  std::map<Link, double> knownLinkRates;
};

/// Ranks are judged first and explain links away: a slow rank's links look slow. `certain` only with culprits; without,
/// the evidence says what kept it from naming one.
Verdict judge(const VerdictInput& input);

/// Links that look slow, whether they are named or something excuses them.
std::set<Link> linksThatLookSlow(const VerdictInput& input);

/// Links that look slow but were not measured often enough to be named: measure them again, one at a time (until empty:
/// five times in all at most), add the measurements to the input and judge anew. Empty when more measuring would not
/// help.
std::vector<WaveLink> linksToConfirm(const VerdictInput& input, const std::vector<Wave>& waves);

}  // namespace falcon::validate
