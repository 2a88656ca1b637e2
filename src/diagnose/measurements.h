// What a validation knows when it judges: figures of ranks, measurements of links, and what the job does with them.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "diagnose/net_condition.h"
#include "validate/cause.h"
#include "validate/figures.h"
#include "validate/gpu_sample.h"
#include "validate/link_measurement.h"
#include "validate/link_plan.h"

namespace falcon::diagnose {

using validate::unknown;

/// What is known of one rank; NaN where nothing is. Ranks are the job's.
struct RankFigures {
  Rank rank = -1;
  double score = unknown;            ///< compute test: work per wall time, in any unit that all ranks share
  double baselineScore = unknown;    ///< the same when the rank was healthy
  double throttledShare = unknown;   ///< of the compute test's span, in which a quota held the rank back: 0 to 1
  double memoryRate = unknown;       ///< bytes per second that it moves
  validate::CauseEvidence evidence;  ///< of the compute test, but for its slowness
  double ownTimeGrowth = unknown;    ///< time outside the library (per micro-batch), now over healthy: 1 is unchanged
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

struct Measurements {
  std::vector<RankFigures> ranks;
  /// The tests of the GPUs, by the rank that uses them. Empty without GPUs.
  std::map<Rank, validate::GpuSample> gpus;
  /// All measurements of this validation; a link that was measured several times is there several times.
  std::vector<validate::LinkMeasurement> links;
  LinkUse use;
  /// Bytes per second that links gave when they were healthy, as far as known.
  std::map<Link, double> knownLinkRates;
  /// What net plugins said of links while profiling, as far as they are any that tell.
  std::map<Link, NetCondition> network;
  /// Where ranks sit, as far as known: whose links share a network interface.
  std::map<Rank, validate::RankSite> sites;
};

}  // namespace falcon::diagnose
