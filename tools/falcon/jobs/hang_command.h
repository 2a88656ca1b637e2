// `falcon status --hang [JOB]`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "instrument/rank_snapshot.h"
#include "jobs/job_files.h"

namespace falcon::jobs {

/// The ranks of a job as they are now.
std::vector<instrument::RankSnapshot> snapshotsOf(const JobFiles& job, std::size_t records);

/// How long calls, or the making of a communicator, have been open in a running job, where it is longer than without a
/// hang: longer than showHang's patience. Ranks that Falcon holds do not count.
std::optional<Nanoseconds> openTooLong(const JobFiles& job);

/// Says who waits for whom in the running jobs of this user (or in one, which may have ended). `patience`: how long a
/// call may last, in seconds; without: 5 s, or three iterations where they take longer. 3 when somebody is waited for
/// longer than that, 0 when nobody is, 1 when the named job is not there.
int showHang(const std::string& job, std::optional<double> patience, bool json);

/// The same of recordings, one of each host of one job: who has no log on this host may have one there.
int showRecordedHang(const std::vector<std::string>& files, std::optional<double> patience, bool json);

}  // namespace falcon::jobs
