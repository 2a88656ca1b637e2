#include "jobs/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/first_time.h"
#include "base/input_file.h"
#include "base/own_folder.h"
#include "instrument/events_path.h"
#include "print.h"
#include "report/json_lines.h"

namespace falcon::jobs {
namespace {

namespace fs = std::filesystem;

/// Of a thousand connections and some devices.
constexpr std::size_t netFileLimit = std::size_t{1} << 20;

std::string lastLine(const fs::path& path, const std::string& job) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";  // who reads a pipe takes from whom it is meant for
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty() && report::isOfJob(line, job)) last = line;
  return last;
}

}  // namespace

std::optional<transport::net::NetSnapshot> RankFile::net() const {
  const auto bytes = readInputFile(fs::path(path).replace_extension(".net"), netFileLimit);
  return bytes ? transport::net::decodeNetSnapshot(*bytes) : std::nullopt;
}

Result<instrument::RangeLogView> RankFile::rangeLog(std::size_t wanted) const {
  return instrument::readRangeLog(fs::path(path).replace_extension(".ranges"), wanted);
}

bool JobFiles::running() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankFile& rank) { return rank.alive; });
}

const RankFile* JobFiles::controller() const {
  // While ranks leave one by one, each next one takes office for a moment: of an ended job, the first had it.
  const bool live = running();
  for (const RankFile& rank : ranks)
    if (rank.view.controller && rank.alive == live) return &rank;
  return nullptr;
}

void keepNamed(std::vector<JobFiles>& jobs, const std::string& name) {
  std::erase_if(jobs,
                [&](const JobFiles& job) { return job.name != name && job.ranks.front().view.identity.job != name; });
}

std::optional<std::vector<JobFiles>> findJobs(const std::string& name) {
  std::vector<JobFiles> jobs = findJobs();
  if (name.empty()) return jobs;
  keepNamed(jobs, name);
  if (!jobs.empty()) return jobs;
  tools::print(stderr, "falcon status: no job named {}; `falcon status` lists those of this user on this host\n", name);
  return std::nullopt;
}

std::optional<JobFiles> chooseJob(const std::string& command, const std::string& name) {
  std::vector<JobFiles> jobs = findJobs();
  if (!name.empty()) keepNamed(jobs, name);
  if (jobs.empty()) {
    tools::print(stderr, "falcon {}: {}; `falcon status` lists the jobs of this user on this host\n", command,
                 name.empty() ? "there is no job" : "no job named " + name);
    return std::nullopt;
  }
  std::stable_partition(jobs.begin(), jobs.end(), [](const JobFiles& job) { return job.running(); });
  return std::move(jobs.front());
}

std::vector<JobFiles> findJobs() {
  std::vector<JobFiles> jobs;
  std::error_code ignored;
  const std::string all = instrument::jobsFolder();
  if (!fs::exists(fs::symlink_status(all, ignored))) return jobs;
  if (const auto own = openOwnFolder(all); !own) {
    if (firstTime(all)) tools::print(stderr, "falcon: {}; the jobs in it are not shown\n", own.error().message());
    return jobs;
  }
  for (const auto& folder : fs::directory_iterator(all, ignored)) {
    if (!folder.is_directory(ignored)) continue;
    const std::string events = instrument::eventsPath(folder.path());
    const std::string name = folder.path().filename();
    JobFiles job{name, folder.path(), {}, events, lastLine(events, name)};
    for (const auto& file : fs::directory_iterator(folder.path(), ignored)) {
      if (file.path().extension() != ".calls") continue;
      auto view = instrument::readCallLog(file.path(), 1);
      if (!view) continue;
      const bool alive = instrument::ownerIsAlive(*view);
      RankFile& rank = job.ranks.emplace_back(RankFile{file.path(), std::move(*view), alive, {}});
      if (auto ranges = rank.rangeLog(0)) rank.ranges = std::move(ranges->names);
    }
    if (job.ranks.empty()) continue;
    std::sort(job.ranks.begin(), job.ranks.end(),
              [](const RankFile& a, const RankFile& b) { return a.view.identity.jobRank < b.view.identity.jobRank; });
    jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const JobFiles& a, const JobFiles& b) {
    return a.ranks.front().view.startWallTime > b.ranks.front().view.startWallTime;
  });
  return jobs;
}

}  // namespace falcon::jobs
