// What is injected when, drawn from a seed. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/event.h"

namespace falcon::demo {

class Dice;

/// One planned fail-slow. Times in seconds after the training began.
struct Injection {
  Culprit culprit;
  double factor = 2;  ///< how many times longer iterations should take, 1.3 to 3
  double start = 0;
  double length = 0;
};

/// The demo's job: 8 ranks on 4 nodes, pipeline inside a node, data parallel groups {0,2,4,6} and {1,3,5,7} across
/// nodes.
struct JobShape {
  int ranks = 8;
  int nodes = 4;
  int dataParallel = 4;
  int pipelineParallel = 2;
  double seconds = 140;   ///< how long the trainer runs
  int microBatches = 32;  ///< of an iteration, over all replicas
  int sequences = 4;      ///< of a micro-batch
  bool overlap = true;    ///< gradients are exchanged while others are computed
};

/// Any rank of the job, equally likely.
Culprit drawRank(Dice& dice, const JobShape& shape);
/// A link that the gradients' rings use, in the direction of use or both ways.
Culprit drawLink(Dice& dice, const JobShape& shape);

/// One slow rank and one slow link, in an order, of strengths and at times that the seed decides. A link is one that
/// the gradients' rings use, slowed in the direction of use or both ways.
std::vector<Injection> drawSchedule(std::uint64_t seed, const JobShape& shape);

}  // namespace falcon::demo
