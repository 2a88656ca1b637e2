#include "control/job_files.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "base/format.h"
#include "base/job_rank.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/whole_file.h"
#include "control/job_folder.h"
#include "control/ranges.h"
#include "instrument/events_path.h"

namespace falcon::control {
namespace {

constexpr std::uint32_t callLogCapacity = 1 << 15;

int fileNumber(Rank jobRank) {
  return jobRank >= 0 ? jobRank : getpid();
}

}  // namespace

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = "unknown";
  gethostname(name, sizeof name - 1);
  return name;
}

Result<std::unique_ptr<JobFiles>> JobFiles::open(const std::string& name) {
  const char* world = std::getenv("WORLD_SIZE");
  const instrument::CallLogIdentity identity{name, hostName(), jobRankFromEnvironment(), world ? std::atoi(world) : 0};
  removeOldJobs();
  std::unique_ptr<JobFiles> files(new JobFiles);
  files->folder_ = instrument::jobFolder(name);
  files->file_ = fmt::format("{}/rank-{}", files->folder_, fileNumber(identity.jobRank));
  const auto made = makeJobFolder(files->folder_);
  const FileDescriptor locked = made ? lockJobFolder(files->folder_) : FileDescriptor();
  if (locked) removeDeadRanks(files->folder_, hostName());
  if (const auto rival = made ? rivalAt(files->file_ + ".calls", identity.host) : std::nullopt)
    log::notice(
        "process {} runs as rank {} of a job {} too: two jobs with one name share their files, and `falcon` takes them "
        "for one; set NCCL_FALCON_JOB to another name for each",
        *rival, identity.jobRank, name);
  auto log = made ? instrument::CallLog::create(files->file_ + ".calls", identity, callLogCapacity)
                  : Result<std::unique_ptr<instrument::CallLog>>(made.error());
  if (!log) {
    log::notice("{}; the call log is kept in private memory, `falcon status` will not see this rank",
                log.error().message());
    files->folder_.clear();
    log = instrument::CallLog::create("", identity, callLogCapacity);
  }
  if (!log) return log.error();
  files->log_ = std::move(*log);
  files->openRanges(identity.jobRank);
  files->keepSettings();
  return files;
}

void JobFiles::keepSettings() {
  if (folder_.empty()) return;
  if (const auto written = writeWhole(file_ + ".settings", shownSettings()); !written)
    log::notice("{}", written.error().message());
}

std::string JobFiles::noteEventsPath(const std::string& chosen) const {
  if (folder_.empty()) return chosen.empty() ? "/dev/null" : chosen;
  if (const auto noted = instrument::noteEventsPath(folder_, chosen); !noted) {
    log::notice("{}; `falcon` will not find this job's events", noted.error().message());
    return chosen.empty() ? folder_ + "/events.jsonl" : chosen;
  }
  return instrument::eventsPath(folder_);
}

void JobFiles::keepExamination(const std::string& problem, const std::string& content) {
  if (folder_.empty()) return;
  if (const auto written = writeWhole(file_ + ".examination", problem + '\n' + content); !written)
    log::notice("{}", written.error().message());
}

void JobFiles::keepNetState(const std::string& content) {
  if (folder_.empty()) return;
  const auto written = writeWhole(file_ + ".net", content);
  if (!written && !netStateFailed_)
    log::notice("{}; `falcon status --net` will not show it", written.error().message());
  netStateFailed_ = !written;
  hasNetState_ = hasNetState_ || written;
}

void JobFiles::keepPlan(const std::string& content) {
  if (folder_.empty()) return;
  const auto written = writeWhole(folder_ + "/plan.json", content);
  if (!written && !planFailed_) log::notice("{}; `falcon plan` will not show it", written.error().message());
  planFailed_ = !written;
}

void JobFiles::openRanges(Rank jobRank) {
  const std::string file = folder_.empty() ? "" : file_ + ".ranges";
  auto ranges = instrument::RangeLog::create(file, jobRank);
  if (!ranges) return log::notice("{}; ranges (ncclFalconRangeBegin) are not recorded", ranges.error().message());
  ranges_ = std::move(*ranges);
  Ranges::useLog(ranges_.get());
}

JobFiles::~JobFiles() {
  if (hasNetState_) ::unlink((file_ + ".net").c_str());
  if (log_) log_->dropRecords();
  if (!ranges_) return;
  if (Ranges::useLog(nullptr))
    ranges_->dropRecords();
  else
    static_cast<void>(ranges_.release());  // a thread may still be writing to it
}

}  // namespace falcon::control
