// A job as a page: what its events and its ranks' call logs tell.
#pragma once

#include "jobs/job_files.h"
#include "report/page.h"

namespace falcon::support {

report_page::Page pageOf(const jobs::JobFiles& job);

}  // namespace falcon::support
