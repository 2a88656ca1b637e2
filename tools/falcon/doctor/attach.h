// `falcon doctor --attach`: a running job tests itself.
#pragma once

#include <optional>
#include <string>

#include "doctor/findings.h"
#include "validate/examination.h"

namespace falcon::doctor {

/// Asks the job's controller to hold the job and test everybody, and waits for the figures. Nothing, and said on stderr
/// why: the job is not there, or does not answer, or could not be tested.
/// @param signal  set to the one of SIGINT, SIGTERM and SIGHUP that ended the wait, of which nothing is said; they stay
///                blocked
std::optional<validate::Examination> examineJob(const std::string& name, int& signal);

/// The same figures as those of a doctor's own ranks. What only these measure stays unknown. Pure.
Measurements measurementsOf(const validate::Examination& examination);

}  // namespace falcon::doctor
