// The jobs of this user as their call logs in shared memory tell them, running or crashed.
#pragma once

#include <string>
#include <vector>

#include "instrument/call_log.h"

namespace falcon::jobs {

struct RankFile {
  std::string path;
  instrument::CallLogView view;
  bool alive = false;  ///< the process that wrote it still runs
};

struct JobFiles {
  std::string name;
  std::string folder;
  std::vector<RankFile> ranks;  ///< by job rank
  std::string lastEvent;        ///< the last line of events.jsonl, "" where there is none
  bool running() const;
  const RankFile* controller() const;
};

/// All jobs, newest first. Files that are not call logs are left out.
std::vector<JobFiles> findJobs();

}  // namespace falcon::jobs
