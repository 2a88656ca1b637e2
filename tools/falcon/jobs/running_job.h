// A job that runs on this host, and what it is told from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "instrument/call_log.h"
#include "jobs/job_files.h"

namespace falcon::jobs {

/// "no running job named x; there are y, z".
std::string noRunningJob(const std::string& name);
/// The running job of that name, looked up anew each time; nothing: it is not there.
std::optional<JobFiles> runningJob(const std::string& name);
/// The same; says on stderr that it is not there, as `falcon COMMAND`.
std::optional<JobFiles> runningJobOrSay(const char* command, const std::string& name);

/// One rank is asked: the controller hears of it, wherever it is.
const RankFile& anyOf(const JobFiles& job);
/// False, and said on stderr: it cannot be told.
bool send(const char* command, const RankFile& rank, instrument::JobCommand what, std::uint32_t argument = 0);

}  // namespace falcon::jobs
