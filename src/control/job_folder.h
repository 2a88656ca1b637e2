// The folders that jobs leave in shared memory: made here, and removed once nobody needs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/owned.h"
#include "base/result.h"

namespace falcon::control {

/// Created with rights for this user only, as the folder of all jobs around it is; an error says why not. What another
/// user has put in the place of either is not used.
Status makeJobFolder(const std::string& folder);

/// Until it is closed no other process of the job has this: for who removes files of others and makes its own. Empty
/// where another one keeps it for longer than `limit` (it was stopped meanwhile).
FileDescriptor lockJobFolder(const std::string& folder, Nanoseconds limit = 2s);

/// Removes the call logs of ranks of this host that have died: an earlier job of the same name left them. Only with the
/// folder locked: else what is dead when it is read may be a living rank's new file when it is removed.
void removeDeadRanks(const std::string& folder, const std::string& host);

/// The living process of another job that keeps this call log, which this process is about to take: both have the
/// job's name and the rank. Nothing: nobody; an earlier run left it; or it is this process's own, or its parent's.
std::optional<std::int64_t> rivalAt(const std::string& callLog, const std::string& host);

/// Ended jobs' folders are kept so that a crash can be looked at, but not for ever: those older than a day go, and all
/// but the newest four, since /dev/shm is small (64 MiB in many containers). What lives stays, and so does what was
/// written to within ten minutes: its processes may be invisible from here.
void removeOldJobs();

}  // namespace falcon::control
