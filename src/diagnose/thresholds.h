// What an account of a fail-slow is decided by: every number, with its unit, its source and the reason.
#pragma once

#include <cmath>
#include <cstddef>

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

  // Ranks: usual scatter of healthy ones, as a logarithm; what was measured replaces it by and by.
  /// Of a compute test of 0.6 s: eight ranks on two cores differ by 10 to 20 %, as the scheduler spreads them.
  double scatterOfScore = 0.15;
  double scatterOfGrowth = 0.08;  ///< of own times, means over several iterations: 5 to 10 % were seen
  /// Of what a quota takes of half a second: by as much as one period of it in five.
  double scatterOfHeldBack = 0.1;
  double scatterOfGpu = 0.01;  ///< of a median of a GPU's repeated tests
  /// How many measurements the usual scatter counts for beside the own.
  double priorOfRanks = 6;
  /// Times its own time's growth, what a test may show of a rank: a core's loss that is no mere moment slows the rank's
  /// own work too, bursts of it less than a test of half a second.
  double mostPerGrowth = 2;

  // Links.
  /// Times that one is measured before it can be named. Once is never enough: a process that lost its core for a moment
  /// made links look up to 16 times slower (measured).
  int fewestMeasurements = 3;
  int mostAttempts = 5;  ///< since some may be disturbed or not answered
  /// Of one that holds up the job and is a little slower beside others that scatter: the mean of so many is three times
  /// as exact.
  int mostAttemptsWhereItHoldsUp = 9;
  std::size_t fewestPeers = 3;  ///< to compare with
  /// Usual scatter (a logarithm) of healthy links between processes of one machine, and for how many measurements it
  /// counts.
  double scatterOfLinks = 0.3;
  double priorOfLinks = 8;
  int fewestDegrees = 8;  ///< of freedom, from which on the own scatter counts
  /// How much wider a scatter may be than it looks by chance, over the degrees of freedom that it is known by.
  double byChance = 8;
  /// How well equal links can be told apart at all: shaped links measured in a trap scatter by 0.4 to 0.7 %.
  double resolution = 0.01;
  double scatterOfUnderWay = 0.1;  ///< of the time that a job's bytes were under way, as a logarithm
  /// A link that is half as fast as it was is not as it always was.
  double historyChanged = std::log(2.0);
  /// Of what iterations became longer by, 0 to 1: a link's bytes that were under way for less held up nothing.
  double leastUnderWay = 0.01;
};

/// How much of a candidate's slowdown its observations show, where that is not all of it.
struct ReachThresholds {
  /// A logarithm: a rank that stands still now and then makes links look slower than by its own slowdown.
  double standingStill = std::log(2.0);
  /// Part of a link's slowdown that the time under way shows at least: it has the waiting of others in it, and lacks
  /// what was hidden behind computing.
  double leastUnderWay = 0.5;
  /// The same of a rank and its own time, which is computing, and data loading, and all else outside of the library.
  double leastOfOwnTime = 1.0 / 3;
};

/// Hosts whose ranks are slow alike. Source of the first: Falcon, section 3.2, case 1 (computation fail-slows are CPU
/// contention mostly); the others follow from the accounts that must close.
struct HostThresholds {
  double leastGrowth = 1.05;  ///< of own time: below it nothing has to be explained
  /// Of the growth of own time, that the processor time an iteration may have in common with it where others take the
  /// processors; and that it must have where these became slower. Between the two nobody can say.
  double processorShare = 0.5;
  /// Of the cores that the job would have used more, had nobody come: what others must use more than before.
  double leastMatch = 0.5;
  double leastCores = 0.1;  ///< that others must use more: a tenth of one is what a desktop does by itself
  /// Of the host's processors, that may stand idle: where more do, whoever wants to run can.
  double mostIdle = 0.25;
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
  std::size_t fewestConnections = 3;  ///< that tell by how much all links alike became slower
};

}  // namespace falcon::diagnose
