// S2: how many micro-batches each data-parallel replica computes.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.h"

namespace falcon::rebalance {

/// A data-parallel replica, as an allocation of micro-batches sees it. With m of them it computes for
/// fillSeconds + m * secondsPerMicroBatch.
struct Replica {
  double secondsPerMicroBatch = 0;  ///< of its slowest stage; positive and finite
  /// However many micro-batches it has: its other stages' time for one, while the pipeline fills and drains; 0: it has
  /// one stage, or that is not known. Source: arXiv 2104.04473, section 2.2.1.
  double fillSeconds = 0;
  int now = 0;  ///< micro-batches that it has; 0: not known
  /// What it must and can take, as its memory allows.
  int least = 1, most = std::numeric_limits<int>::max();

  double secondsWith(std::int64_t microBatches) const {
    return fillSeconds + secondsPerMicroBatch * static_cast<double>(microBatches);
  }
};

struct SplitRules {
  int total = 0;     ///< micro-batches of one iteration over all replicas
  int multiple = 1;  ///< every replica gets a multiple of it: an interleaved pipeline's stages (Megatron)
};

/// Minimises the time of the replica that computes longest. Exact: each further micro-batch goes to the replica that
/// would be done first with it (an exchange argument; tested against brute force), where minimising the variance, as in
/// the papers' code, is up to 19.6 % worse. Of the splits that are equally good that which changes the fewest replicas
/// where it is known what all have now; else the greedy one, and among equals the lower replica gets it. So all ranks
/// compute the same. Time: n * (64 + log n) for n replicas, whatever the total.
///
/// @return  micro-batches by replica; invalidArgument names what is wrong or cannot be satisfied
/// Source: Falcon, arXiv 2410.12588, section 5.2.
Result<std::vector<int>> splitMicroBatches(std::span<const Replica> replicas, const SplitRules& rules);

/// How long the slowest replica computes, in seconds.
double makespan(std::span<const Replica> replicas, std::span<const int> microBatches);

/// The split without any knowledge: as equal as possible in multiples, the first replicas get the rest.
std::vector<int> equalSplit(int replicas, int total, int multiple = 1);

}  // namespace falcon::rebalance
