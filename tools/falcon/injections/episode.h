// One injection into the running job, from its start until its relief was seen.
#pragma once

#include "injections/draw.h"
#include "injections/scoring.h"
#include "injections/slow_job.h"

namespace falcon::injections {

/// Throws std::runtime_error where the victim could not be slowed, and when the job ended.
Episode injectOnce(SlowJob& job, const Drawn& drawn);

}  // namespace falcon::injections
