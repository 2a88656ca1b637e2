// Who the job waits for, from the calls that all members sent: pure glue to instrument/blame.h.
#pragma once

#include <optional>
#include <string>

#include "control/clock_book.h"
#include "control/job_view.h"
#include "instrument/blame.h"
#include "instrument/suspicion.h"

namespace falcon::control {

/// The chain of waiting in the last profiling, beside that of the baseline. Nothing where it cannot be told: members
/// whose calls are missing, ranks that share a process, fewer than two whole iterations, clocks that are not known well
/// enough, or a plan of ours that changed the calls meanwhile. The job is as it was afterwards.
std::optional<instrument::Blame> blameOf(JobView& job, const ClockBook& clocks, std::size_t window,
                                         const instrument::BlameRules& rules = {});

/// One sentence for people, with the figures.
std::string sentenceOf(const instrument::Blame& blame, const JobView& job);

/// Where a slow rank's time goes, if it is one part of its code and not all of it: the application's range, or else,
/// where the chain of waiting saw that it is one stretch, that. Empty: nothing of the kind.
std::string outsideOfCollectives(const JobView& job, Rank rank, std::size_t window, bool oneStretch);

/// Where the chain of waiting leaves much of the delay to nobody, groups in which all wait longer are tested too:
/// behind a slow rank a slow link of another group hardly shows. Not where a group or a link has half of the delay: the
/// rest is of a busy machine more often than of a second slow link, and that one is looked for once the first is known.
void suspectWhoWaits(const instrument::Blame& blame, instrument::Suspicion& suspicion);

/// Whom the chain of waiting accuses of at least half of the delay is tested too, and a group or link that it accuses
/// of three tenths. Where it accuses somebody of half, nobody else is suspected for whom nobody waits: beside other
/// programs some rank always looks slow. Members of an accused group stay; a group with less than three tenths that an
/// accused rank, or a member of an accused group, belongs to does not, unless it is that of a link between others: its
/// delay is theirs.
void followChain(const instrument::Blame& blame, const JobView& job, instrument::Suspicion& suspicion);

}  // namespace falcon::control
