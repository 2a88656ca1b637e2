// What happens to what is known of ranks when they exchange their roles. Pure.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "control/job_view.h"

namespace falcon::control {

/// By job rank: the role of each, as it has told; its own where it has told none.
std::vector<int> rolesOf(const JobView& job);

/// The healthy baseline belongs to the role: who has one now gets that of who had it before, with the communicators
/// that its groups are now in the place of those that they were. Iterations from before are forgotten.
/// @param before       the communicators before the exchange; the job has those of now
/// @param rolesBefore  by job rank
/// @param rolesNow     by job rank
void moveBaselines(JobView& job, const std::map<CommunicatorId, CommunicatorFormed>& before,
                   std::span<const int> rolesBefore, std::span<const int> rolesNow);

}  // namespace falcon::control
