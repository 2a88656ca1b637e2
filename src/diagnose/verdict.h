// Who is to blame, from what was measured while the job was held and what profiling saw before: one account of ranks
// and links together. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/event.h"
#include "diagnose/account.h"
#include "diagnose/measurements.h"

namespace falcon::diagnose {

struct SlowRank {
  Rank rank = -1;
  double slowdown = 1;    ///< how many times longer its work takes
  double confidence = 0;  ///< 0 to 1
  std::string evidence;   ///< "matrix products ..."; without the rank's name
};

struct SlowLink {
  Link link;
  double slowdown = 1;  ///< how many times longer than its peers (or than before) it takes
  double confidence = 0;
  std::string evidence;  ///< "12.0 MB/s against ..."; without the link's name
};

struct Judgement {
  std::vector<SlowRank> ranks;       ///< named
  std::vector<SlowLink> links;       ///< named
  std::vector<SlowRank> doubted;     ///< look slow, not clearly enough to be named
  std::vector<Link> toConfirm;       ///< look slow, need more measurements
  std::vector<Link> silent;          ///< never answered or broke: nothing is said about their speed
  std::vector<Link> explainedAway;   ///< look slow, at a slow rank's end
  std::set<Link> lookSlow;           ///< all that do, named or excused: what they give now is not their healthy rate
  std::vector<std::string> remarks;  ///< about what was not named; may be empty
  double suspicion = 0;              ///< 0 to 1: how near the nearest came to being named
  std::vector<Observation> observations;
};

/// One account of all of it: see account.h, reach.h and thresholds.h. If most links of a medium would have to be named,
/// none is.
Judgement judgementOf(const Measurements& measured, const Thresholds& thresholds = {});

/// `certain` only with culprits; without, the evidence says what kept it from naming one.
Verdict verdictOf(const Judgement& judgement, const Measurements& measured);
inline Verdict judge(const Measurements& measured) {
  return verdictOf(judgementOf(measured), measured);
}

/// Links that look slow but were not measured often enough to be named: measure them again, one at a time (until empty:
/// five times in all at most, nine where profiling saw them hold up the job), add the measurements to the input and
/// judge anew. Empty when more measuring would not help.
std::vector<validate::WaveLink> linksToConfirm(const Measurements& measured, const std::vector<validate::Wave>& waves);

}  // namespace falcon::diagnose
