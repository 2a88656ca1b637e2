#include "jobs/running_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "print.h"

namespace falcon::jobs {

std::string noRunningJob(const std::string& name) {
  std::vector<std::string> running;
  for (const JobFiles& job : findJobs())
    if (job.running()) running.push_back(job.name);
  return fmt::format("no running job named {}; of this user on this host {}", name,
                     running.empty() ? "there is none" : fmt::format("there are: {}", fmt::join(running, ", ")));
}

std::optional<JobFiles> runningJob(const std::string& name) {
  for (JobFiles& job : findJobs())
    if ((job.name == name || job.ranks.front().view.identity.job == name) && job.running()) return std::move(job);
  return std::nullopt;
}

std::optional<JobFiles> runningJobOrSay(const char* command, const std::string& name) {
  auto job = runningJob(name);
  if (!job) tools::print(stderr, "falcon {}: {}\n", command, noRunningJob(name));
  return job;
}

const RankFile& anyOf(const JobFiles& job) {
  return *std::find_if(job.ranks.begin(), job.ranks.end(), [](const RankFile& rank) { return rank.alive; });
}

bool send(const char* command, const RankFile& rank, instrument::JobCommand what, std::uint32_t argument) {
  const auto sent = instrument::sendCommand(rank.path, what, argument);
  if (!sent) tools::print(stderr, "falcon {}: {}\n", command, sent.error().message());
  return static_cast<bool>(sent);
}

}  // namespace falcon::jobs
