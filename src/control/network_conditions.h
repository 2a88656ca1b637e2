// What net plugins said of the network, as said of the job's links. Pure.
#pragma once

#include <map>

#include "control/job_view.h"
#include "diagnose/net_condition.h"

namespace falcon::control {

/// Of the links between members, while profiling was last on; empty where no plugin tells. Plugins know addresses, not
/// ranks: who shares an address shares what is said of it.
std::map<Link, diagnose::NetCondition> networkConditions(const JobView& job);

}  // namespace falcon::control
