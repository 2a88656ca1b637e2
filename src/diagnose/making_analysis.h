// Who holds up whom where communicators are made: there is no communicator yet that could tell.
#pragma once

#include <span>
#include <vector>

#include "diagnose/hang_analysis.h"
#include "diagnose/hang_text.h"
#include "diagnose/job_members.h"

namespace falcon::diagnose {

/// The process is in the making of a communicator for at least `patience`.
bool waitsInMaking(const instrument::RankSnapshot& rank, Nanoseconds patience);

/// One finding for each communicator that somebody waits for as long as that. Who has not come is known by the others'
/// logs, and by what the rendezvous has seen where its process is among them; by the job's rank where the communicator
/// is of all ranks.
std::vector<Finding> judgeMakings(std::span<const instrument::RankSnapshot> ranks,
                                  std::span<const JobCommunicator> communicators, const HangWords& words,
                                  Nanoseconds patience);

}  // namespace falcon::diagnose
