// Whom a slowness most likely comes from that is too small to hold the job for.
#pragma once

#include <string>

#include "base/event.h"
#include "control/clock_book.h"
#include "control/job_view.h"

namespace falcon::control {

struct LikelyCulprit {
  Culprit culprit;     ///< none: nobody has half of the delay, or only a group is known
  std::string reason;  ///< "likely rank 3: ..."; in words also where nobody stands out
};

/// By what the kernel counted, what ranks took for their own work over all samples that are kept, and what the newest
/// profile timed and logged: evidence that costs the job nothing, and no proof.
/// @param limit  of what iterations became longer by, relative: what one cause must explain half of
LikelyCulprit likelyCulprit(JobView& job, const ClockBook& clocks, double limit);

}  // namespace falcon::control
