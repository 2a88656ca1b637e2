// Who the job waits for, from the calls that all members sent: pure glue to instrument/blame.h.
#pragma once

#include <string>

#include "base/result.h"
#include "control/clock_book.h"
#include "control/job_view.h"
#include "instrument/blame.h"

namespace falcon::control {

/// The chain of waiting in the last profiling, beside that of the baseline. An error says why it cannot be told:
/// members whose calls are missing, ranks that share a process, fewer than two whole iterations, clocks that are not
/// known well enough, or a plan of ours that changed the calls meanwhile. The job is as it was afterwards.
Result<instrument::Blame> blameOf(JobView& job, const ClockBook& clocks, std::size_t window,
                                  const instrument::BlameRules& rules = {});

/// One sentence for people, with the figures.
std::string sentenceOf(const instrument::Blame& blame, const JobView& job);

/// Where a slow rank's time goes, if it is one part of its code and not all of it: the application's range, or else,
/// where the chain of waiting saw that it is one stretch, that. Empty: nothing of the kind.
std::string outsideOfCollectives(const JobView& job, Rank rank, std::size_t window, bool oneStretch);

}  // namespace falcon::control
