// What the planner knows of how fast ranks, stages and replicas are. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "control/job_view.h"
#include "rebalance/planner.h"

namespace falcon::control {

/// Seconds for a micro-batch: of every replica's slowest stage and of what its others add while its pipeline fills and
/// drains, by their newest `window` iterations; in health, of every stage; and how much longer ranks take than in
/// health. A stage is as slow as its slowest rank. Each only where it is known of all. After addLayout(), which has
/// found a layout.
///
/// Four iterations of equal ranks differed by 30 % where they share cores (measured), so the same stage of several
/// replicas takes equally long wherever the iterations' own scatter is a reason for the difference. Not so where a
/// culprit is: that it differs is known by more than these iterations.
///
/// A replica's fill is the sum of its other stages' times for one micro-batch, forward and backward: with p stages of
/// equal time t it is (p - 1) t. Interleaved, with v parts of the model on each rank, it is a v-th of that; v is not
/// said, so it is taken to be 2, the least.
/// Source: Efficient Large-Scale Language Model Training, arXiv 2104.04473, sections 2.2.1 and 2.2.2 (time of the
/// pipeline's bubble).
void addPaces(const JobView& job, std::size_t window, std::span<const Culprit> culprits, rebalance::JobFacts& facts);

}  // namespace falcon::control
