// A job as a page: what its events and its ranks' call logs tell.
#pragma once

#include <string>
#include <vector>

#include "jobs/job_files.h"
#include "report/html_report.h"

namespace falcon::support {

/// @param events  the lines of events.jsonl
report_page::Page pageOf(const jobs::JobFiles& job, const std::vector<std::string>& events);

}  // namespace falcon::support
