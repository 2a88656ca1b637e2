// What today's code may say where chance decides.
#pragma once

#include <vector>

#include "told.h"

namespace falcon::documents {

/// Events of today's controller about jobs in arithmetic with slow ranks and links.
std::vector<Told> toldOfMadeUpJobs();

/// What it may add to a suspicion or a verdict, by itself: whether a quota, a busy core or the rank's own work is to
/// blame, and where the chain of waiting ends, hangs on the machine in a real run.
std::vector<Told> sentencesOfChance();

}  // namespace falcon::documents
