// Which links are slow. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include "validate/rank_verdict.h"
#include "validate/verdict.h"

namespace falcon::validate {

struct SlowLink {
  Link link;
  double ratio = 1;  ///< how many times longer than its peers (or than before) it takes
  double confidence = 0;
  std::string evidence;  ///< "12.0 MB/s against ..."; without the link's name
};

struct LinkJudgement {
  std::vector<SlowLink> slow;
  std::vector<Link> toConfirm;      ///< look slow, need more measurements
  std::vector<Link> silent;         ///< never answered or broke: nothing is said about their speed
  std::vector<Link> explainedAway;  ///< look slow, at a slow rank's end
  std::set<Link> lookSlow;          ///< all that do, named or excused: what they give now is not their healthy rate
  double suspicion = 0;             ///< 0 to 1: how near the nearest link came to being named
  std::string remark;               ///< about links that could not be judged; may be empty
};

/// Links are compared with the median of their medium, and with their own healthy rate where it is known. On one
/// machine unshaped links scatter by 2-4 times because the scheduler is measured, and now and then by 16. That only
/// ever makes a measurement slower, so a link's best one counts, and it is slow only if
///  - it was measured at least three times while no core was missing; and
///  - takes at least 2.5 times the median, and more than five times the scatter of a mean of its measurements. Where
///  profiling saw its bytes take a fifth or more of what iterations became longer by (two sources agree), and these
///  links' own scatter is known by eight degrees of freedom, 1.15 times the median is enough: if the lower bound is
///  above 1.1, and it is six times the scatter of the mean; and
///  - a gap of 1.5, or of half its own distance, separates it from the slowest link that is not named; and
///  - it takes more than twice its own healthy time, where that is known, or that much longer than it (links that
///  always were slower are not accused); and
///  - the job waits for it: it was not tested for a comparison only, and in shared memory its bytes move for at least
///  a hundredth of what an iteration takes more, where both are known (a process that loses its core for a moment makes
///  6 GB/s of 20, which no iteration of a second would feel).
/// Fewer than three comparable links: only the own healthy rate counts. Links at a slow rank's ends do not count as
/// peers, are allowed the rank's slowdown, and then must be twice as slow again; that goes for ranks that are only
/// suspected too. If most links look slow, none is named.
/// @param slowRanks  named and suspected ones
LinkJudgement judgeLinks(const VerdictInput& input, const std::vector<SlowRank>& slowRanks);

}  // namespace falcon::validate
