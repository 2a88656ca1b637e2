// The calls that a synchronous training job makes, on a clock of arithmetic: who waits for whom follows from nothing
// but the schedule and the times given.
#pragma once

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "instrument/communicator_roles.h"
#include "instrument/peer_comparison.h"
#include "instrument/profile.h"
#include "instrument/timeline.h"
#include "topology/layout.h"

namespace falcon::instrument {

/// One-forward-one-backward pipelines of tensor groups, replicas that sum their gradients at the end. Seconds.
struct SimulatedTraining {
  topology::Layout layout;
  int microBatches = 4;
  int layers = 2;                      ///< a stage: each ends in a tensor all-reduce
  double computing = 1e-3;             ///< a layer, forward; backward takes twice as long
  double tensorSum = 1e-4;             ///< an all-reduce of a tensor group
  double message = 2e-4;               ///< activations to the next stage
  double gradientSum = 4e-3;           ///< an all-reduce of a data group
  double loading = 5e-4;               ///< data loading before the first micro-batch
  double jitter = 0.02;                ///< of each computing, uniform
  bool sendsWait = false;              ///< a send ends when its message has arrived (large), else at once
  std::map<Rank, double> slowRanks;    ///< factors of computing and of loading
  std::map<Rank, double> slowLoading;  ///< factors of loading alone
  std::map<Link, double> slowLinks;    ///< factors of every transfer over this link of job ranks, in rings too
  std::map<std::pair<Rank, int>, double> pauses;  ///< seconds before a rank's iteration of that number begins
  std::map<int, double> stages;                   ///< factors of computing by stage: unequal ones
  std::vector<double> sequenceLengths;  ///< factors of computing, drawn for every replica and iteration; empty: equal

  std::vector<CommunicatorMembers> communicators() const;
  /// The same with what a rank does with them in an iteration.
  std::vector<CommunicatorShape> shapes() const;
  JobTimeline run(int iterations, unsigned seed) const;
};

/// What the ranks spent where, an iteration.
std::vector<RankNow> profilesOf(const JobTimeline& timeline);

}  // namespace falcon::instrument
