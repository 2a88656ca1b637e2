// At most one injection on a victim: two would measure each other, and each undo what the other found.
#pragma once

#include "base/event.h"
#include "base/owned.h"
#include "base/result.h"
#include "machine/description.h"

namespace falcon::tools {

/// Locks on byte ranges of a file of the victim's process in /proc, in no relation to its bytes: the file lives as long
/// as the process does, nothing is left of it, and it is the same whatever way the victim was named. A lock belongs to
/// the open file: it ends when the last descriptor of it is closed, so whoever undoes the injection keeps one
/// (Guardian::Work::kept). The range's length tells others what is in force.

/// Errors say what is in force on the rank's process already. Several memory hogs may share a rank.
enum class RankInjection : int { slowRank = 1, memoryHog, hang };
Result<FileDescriptor> claimRank(const RankDescription& victim, RankInjection injection);

/// One link of a job at a time: queues of an interface and lines of a throttle file are shared by several links.
Result<FileDescriptor> claimLink(const JobDescription& job, Link link, bool bothWays);

}  // namespace falcon::tools
