// Which links a validation tests: those that the suspicious groups use. Pure glue between what profiling saw and the
// link planner.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "control/job_view.h"
#include "diagnose/suspicion.h"
#include "validate/link_plan.h"

namespace falcon::control {

/// The suspicious groups, as the link planner wants them; where they have few links, some like them beside. Their
/// rings, which are the same on all channels; the trees that their bytes were seen on in the last profiling, both where
/// it did not reach every member and there are collectives; and of the other pairs that carried something (messages,
/// direct exchanges) the slowest of every sender.
std::vector<validate::TestedGroup> testedGroups(const JobView& job, const diagnose::Suspicion& suspects);
/// Links that only such groups have as lend theirs.
std::set<Link> onlyCompared(const std::vector<validate::TestedGroup>& groups);
/// What the last profiling saw of links, over all communicators.
struct LinkTimes {
  std::map<Link, double> moving;  ///< seconds an iteration in which bytes moved between job ranks
  /// By how much that is more than what as many bytes took in health, at the end that saw most of it; links whose
  /// healthy time is not known are missing.
  std::map<Link, double> grown;
};
LinkTimes linkTimes(const JobView& job);
/// For those who want to know of everybody: all groups that can be tested, nobody accused.
diagnose::Suspicion everybody(const JobView& job);

}  // namespace falcon::control
