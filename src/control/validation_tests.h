// What a validation measured, who computes for it, and the way from measurements to the verdict. Pure glue.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "control/validation.h"
#include "diagnose/verdict.h"
#include "validate/examination.h"
#include "validate/link_plan.h"

namespace falcon::control {

/// Five periods of a CPU quota and one more.
inline constexpr double computeSpanSeconds = 0.6;

struct ValidationTests {
  std::map<ProcessId, ComputeResult> compute;
  std::vector<validate::LinkMeasurement> links;
  diagnose::LinkUse use;  ///< of them
};

/// What the job, which is held, does with the links of these groups.
diagnose::LinkUse linkUseOf(const JobView& job, const std::vector<validate::TestedGroup>& groups, std::size_t window);
std::map<Rank, validate::RankSite> sitesOf(const JobView& job);
/// Members of the suspicious groups; for suspicious ranks, of the groups they share with others.
std::set<ProcessId> computeTargets(const JobView& job, const diagnose::Suspicion& suspects);
/// What diagnose::judge() decides from.
diagnose::Measurements measurementsOf(const JobView& job, const ValidationInput& input, const ValidationTests& tests);
validate::Examination examinationOf(const JobView& job, const ValidationInput& input, const ValidationTests& tests,
                                    double heldSeconds);

}  // namespace falcon::control
