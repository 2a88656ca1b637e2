// How much of a slowdown a remedy gave back, beside the most that any could. Pure.
#pragma once

#include <optional>
#include <vector>

#include "demo/schedule.h"
#include "injections/cells.h"
#include "injections/scoring.h"

namespace falcon::injections {

/// The lengths of the iterations between two moments, seconds; `ends` of all, in order.
std::vector<double> iterationsBetween(const std::vector<double>& ends, double from, double to);

/// The share that the best remedy gives back, 1 is all, of a slowdown that is the whole of its cell's factor:
/// - a link: all, since a ring of three nodes and more has an order that leaves it out;
/// - an interface: what an AllReduce must take at least where one of p interfaces is at 1/f, which is max(f, 2 (p - 1)
///   / (p - 1 + 1 / f)) over 2 (p - 1) / p of the healthy time. Source: OptCC, arXiv 2606.01680;
/// - a rank: with whole micro-batches, of which its replica gets fewer. Source: Falcon, arXiv 2410.12588, section 5.2.
/// Nothing: no remedy of a job's own is known (somebody takes the host's cores), or nothing is slow.
std::optional<double> boundOf(const Cell& cell, const demo::JobShape& shape);

/// Of medians of iterations: `healthySeconds` long before the injection, slow from its effect to the first remedy, and
/// from 2 s after the last remedy to the injection's end; without remedy none is recovered. Nothing: it hardly
/// slowed the job, or there are too few iterations.
std::optional<double> recoveredIn(const Episode& episode, double healthySeconds);

}  // namespace falcon::injections
