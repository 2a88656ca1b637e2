// At most one injection on a victim: two would measure each other, and each undo what the other found.
#pragma once

#include <string>

#include "base/event.h"
#include "base/owned.h"
#include "base/result.h"
#include "machine/description.h"

namespace falcon::tools {

/// Locks on byte ranges of the job's description file, in no relation to its bytes. A lock belongs to the open file:
/// it ends when the last descriptor of it is closed, so whoever undoes the injection keeps one (Guardian::Work::kept).
/// The range's begin is the victim, its length tells others what is in force.

/// Errors say what is in force on the rank already. Several memory hogs may share a rank.
enum class RankInjection : int { slowRank = 1, memoryHog = 2 };
Result<FileDescriptor> claimRank(const JobDescription& job, Rank rank, RankInjection injection);

/// One link of a job at a time: queues of an interface and lines of a throttle file are shared by several links.
Result<FileDescriptor> claimLink(const JobDescription& job, Link link, bool bothWays);

}  // namespace falcon::tools
