// What the planner knows of memory: whether a rank has room for another role's state. Pure.
#pragma once

#include "control/job_view.h"
#include "rebalance/planner.h"

namespace falcon::control {

/// What a rank that takes another role has to have room for beside the role's state: the old groups stay until the new
/// ones are there, and a communicator takes less than that (docs/scaling.md). Bytes.
inline constexpr double memoryOfNewGroups = 64.0 * (1 << 20);

/// What each rank has left, which is a pool's by the ranks that share it, the least of all; and what each role takes
/// while it moves: as the old state stays until all ranks have the new one (docs/reshape.md), all of it. State is host
/// memory, and so are both. After addRoles(): where roles cannot be exchanged there is nothing to fit.
void addMemory(const JobView& job, rebalance::JobFacts& facts);

}  // namespace falcon::control
