// Everything about a job in one file, for somebody who cannot log in here.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "jobs/job_files.h"

namespace falcon::support {

/// Of an environment as /proc/<pid>/environ has it, what may be shown (base/settings.h).
std::map<std::string, std::string> settingsIn(const std::string& environment);

/// Writes a .tar.gz (mode 0600) with one folder: report.html, status.json, hang.json, metrics.txt, the events, the call
/// logs, environment.json, versions.txt. What cannot be had is named in problems.txt.
Status writeBundle(const std::string& path, const jobs::JobFiles& job);

}  // namespace falcon::support
