// What the planner knows of the layout that the framework has registered: who is where in it, and what goes between the
// places. Pure.
#pragma once

#include <map>
#include <string>

#include "control/job_view.h"
#include "rebalance/planner.h"

namespace falcon::control {

/// The layout, once every rank of it has registered its part; who has which place of it, and on which nodes, where that
/// is known of all.
/// @param nodes  numbers of the nodes' names
void addLayout(const JobView& job, const std::map<std::string, int>& nodes, rebalance::JobFacts& facts);

/// Who has which role, where every rank can exchange it. After addLayout().
void addRoles(const JobView& job, rebalance::JobFacts& facts);

/// What neighbours of a group sent each other in the baseline, bytes an iteration: the most that any pair did.
rebalance::TrafficVolumes volumesOf(const JobView& job);

}  // namespace falcon::control
