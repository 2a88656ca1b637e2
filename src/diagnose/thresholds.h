// What an account of a fail-slow is decided by: every number, with its unit, its source and the reason.
#pragma once

#include <cmath>

namespace falcon::diagnose {

/// Slowdowns are natural logarithms of "times slower". Costs are squares of standard deviations.
struct Thresholds {
  // The fit.
  /// Cost of one observation that nobody explains, at most: whatever it is, one figure must not decide alone what
  /// several others deny. More than `gain`, or nothing could be named by one source.
  double mostCost = 64;
  /// Of every candidate: what it explains must be worth three standard deviations, or chance explains it better.
  double price = 9;
  /// The same for each further observation that a candidate should show in: of two that explain alike, the smaller.
  double breadth = 0.01;
  int mostExplanations = 4;  ///< at a time: more than that is no fail-slow of somebody, but of everybody
  int mostForPairs = 64;     ///< candidates that are tried two at a time, those first that explain most

  // Who is named.
  /// Falcon (arXiv 2410.12588, section 4.3) holds links slow from 1.1 times the median on: that is the lower bound, at
  /// one chance in two thousand...
  double leastBound = std::log(1.1);
  double boundDeviations = 3.3;
  /// ... and the estimate is beyond it by as much as the bound is above nothing.
  double leastOfLink = std::log(1.15);
  double leastOfRank = std::log(1.2);  ///< Falcon, section 4.3
  /// What the account would cost more without it: five and a half standard deviations.
  double gain = 30;
  /// Named by one source alone: a slowdown that no mere scatter of a machine makes. Unshaped links between processes of
  /// one machine scatter by 2 to 4 times, own times and compute tests by 5 to 20 %; GPUs of one model by 1 %.
  double aloneLink = std::log(2.5);
  double aloneRank = std::log(1.5);
  double aloneGpu = std::log(1.2);
  /// A source agrees where it shows this part of the slowdown, beyond two standard deviations.
  double agreeingPart = 0.5;
  double agreeingDeviations = 2;

  // What looks slow without being named: it is measured again, and its rate is nobody's healthy one.
  double lookSlow = std::log(2.0);
  double lookSlowDeviations = 2.5;

  // What of the delay somebody must have to be to blame.
  /// A link's bytes: of at most four causes in a row.
  double leastPartOfLink = 0.2;
  /// A rank's own time, by itself. Beside a slow link the own time of ranks that compute little grows by chance: 1.7
  /// times was seen, of an eighth of the delay.
  double leastPartOfRank = 0.3;
};

/// What is suspected before any test. All but the first three are parts of a time, 0 to 1.
struct SuspicionThresholds {
  /// Times slower than the baseline, beyond what all ranks are. Source: Falcon, section 4.3.
  double leastOfRank = 1.2;
  double leastOfGroup = 1.2;
  /// The same of a rank that its partners wait for, beside its peers: there are two figures that say so.
  double leastWhereWaitedFor = 1.1;
  double leastShare = 0.05;  ///< of a healthy iteration: who grew by less cannot be the cause
  double leastPart = 0.1;    ///< of what iterations became longer by, the delay: likewise
  /// Of the delay, a rank's own time: that of healthy ranks grows by chance beside a busy core (an eighth was seen).
  double leastPartOfRank = 0.2;
  double wholePart = 0.95;   ///< of the delay: nothing is left for others
  double accusedPart = 0.5;  ///< of the delay, by the chain of waiting: who has it is tested, whatever else is seen
  /// The same of a link or a group, which beside another cause may have no half; and what is much to be nobody's.
  double testedPart = 0.3;
};

}  // namespace falcon::diagnose
