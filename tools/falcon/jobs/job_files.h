// The jobs of this user as their call logs in shared memory tell them, running or crashed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "instrument/call_log_view.h"
#include "instrument/range_log.h"
#include "transport/plugin/net_snapshot.h"

namespace falcon::jobs {

struct RankFile {
  std::string path;
  instrument::CallLogView view;
  bool alive = false;                                  ///< the process that wrote it still runs
  bool isHeld() const { return alive && view.held; }   ///< by Falcon
  std::vector<instrument::RangeLogView::Name> ranges;  ///< the application's, in the last iteration
  /// What its net plugin tells of the network. Nothing: none that does is in use.
  std::optional<transport::net::NetSnapshot> net() const;
  /// Its ranges as they are now, and the newest `wanted` that have ended. Errors: there is no such log, or it is
  /// damaged.
  Result<instrument::RangeLogView> rangeLog(std::size_t wanted) const;
};

struct JobFiles {
  std::string name;
  std::string folder;
  std::vector<RankFile> ranks;  ///< by job rank
  std::string events;           ///< the file of its events, wherever that is
  std::string lastEvent;        ///< the last line of it, "" where there is none
  bool running() const;
  const RankFile* controller() const;
};

/// Leaves only those of that name, which is the folder's or the one that the ranks know.
void keepNamed(std::vector<JobFiles>& jobs, const std::string& name);

/// The job of that name; without one, the newest that runs, or else the newest. Says on stderr why there is none, as
/// `falcon COMMAND`.
std::optional<JobFiles> chooseJob(const std::string& command, const std::string& name);

/// All jobs, newest first. Files that are not call logs are left out, and so is a folder that another
/// user has put in the place of this user's: stderr says so once.
std::vector<JobFiles> findJobs();
/// The same, or only those of a name that is not "". Says on stderr, as `falcon status`, where there are none of it.
std::optional<std::vector<JobFiles>> findJobs(const std::string& name);

}  // namespace falcon::jobs
