#include "jobs/status_command.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "jobs/job_files.h"

namespace falcon::jobs {
namespace {

using json = nlohmann::json;

bool hasFailslow(const JobFiles& job) {
  const RankFile* controller = job.controller();
  return job.running() && controller && controller->view.failslowActive;
}

json toJson(const JobFiles& job) {
  json ranks = json::array();
  for (const RankFile& rank : job.ranks) {
    ranks.push_back({{"rank", rank.view.identity.jobRank},
                     {"host", rank.view.identity.host},
                     {"pid", rank.view.pid},
                     {"alive", rank.alive},
                     {"state", nameOf(rank.view.state)},
                     {"controller", &rank == job.controller()},
                     {"held", rank.view.held},
                     {"iterations", rank.view.iterations},
                     {"iteration_s", rank.view.iterationSeconds},
                     {"calls", rank.view.calls}});
  }
  const json last = json::parse(job.lastEvent, nullptr, false);
  return {{"job", job.name},
          {"running", job.running()},
          {"failslow_active", hasFailslow(job)},
          {"ranks", ranks},
          {"last_event", last.is_discarded() ? json() : last}};
}

void print(const JobFiles& job) {
  const RankFile& shown = job.controller() ? *job.controller() : job.ranks.front();
  fmt::print("job {}  {}  {} of {} ranks here  {}{}\n", job.name, job.running() ? "running" : "ended", job.ranks.size(),
             shown.view.identity.worldSize > 0 ? std::to_string(shown.view.identity.worldSize) : "?",
             nameOf(shown.view.state), hasFailslow(job) ? "  FAIL-SLOW" : "");
  fmt::print("  {:>4}  {:>8}  {:<12}  {:>10}  {:>12}  {:>10}  {}\n", "rank", "pid", "state", "iterations", "iteration",
             "calls", "");
  for (const RankFile& rank : job.ranks) {
    fmt::print("  {:>4}  {:>8}  {:<12}  {:>10}  {:>12}  {:>10}  {}\n", rank.view.identity.jobRank, rank.view.pid,
               rank.alive ? nameOf(rank.view.state) : "gone", rank.view.iterations,
               rank.view.iterationSeconds > 0 ? fmt::format("{:.1f} ms", rank.view.iterationSeconds * 1e3) : "unknown",
               rank.view.calls,
               std::string(&rank == job.controller() ? "controller" : "") + (rank.view.held ? " held" : ""));
  }
  const json last = json::parse(job.lastEvent, nullptr, false);
  if (last.is_object()) fmt::print("  last event: {}: {}\n", last.value("kind", ""), last.value("text", ""));
}

}  // namespace

int showStatus(const std::string& name, bool asJson) {
  std::vector<JobFiles> jobs = findJobs();
  if (!name.empty()) {
    std::erase_if(jobs,
                  [&](const JobFiles& job) { return job.name != name && job.ranks.front().view.identity.job != name; });
    if (jobs.empty()) {
      fmt::print(stderr, "falcon status: no job named {}; `falcon status` lists those of this user on this host\n",
                 name);
      return 1;
    }
  }
  int code = 0;
  json list = json::array();
  for (const JobFiles& job : jobs) {
    if (hasFailslow(job)) code = 3;
    if (asJson)
      list.push_back(toJson(job));
    else
      print(job);
  }
  if (asJson)
    fmt::print("{}\n", list.dump(2));
  else if (jobs.empty())
    fmt::print(stderr, "falcon status: no job of this user ran on this host with NCCL_FALCON=1\n");
  return code;
}

int switchOff(const std::string& name) {
  const auto find = [&]() -> const JobFiles* {
    static std::vector<JobFiles> jobs;
    jobs = findJobs();
    for (const JobFiles& job : jobs)
      if ((job.name == name || job.ranks.front().view.identity.job == name) && job.running()) return &job;
    return nullptr;
  };
  const JobFiles* job = find();
  if (!job) {
    fmt::print(stderr, "falcon off: no running job named {}; `falcon status` lists those of this user on this host\n",
               name);
    return 1;
  }
  for (const RankFile& rank : job->ranks) {
    if (!rank.alive) continue;
    if (const auto sent = instrument::sendCommand(rank.path, instrument::JobCommand::off); !sent) {
      fmt::print(stderr, "falcon off: {}\n", sent.error().message());
      return 1;
    }
  }
  for (int i = 0; i < 100; ++i) {
    job = find();
    if (!job) return 0;  // it ended meanwhile
    bool allOff = true;
    for (const RankFile& rank : job->ranks)
      allOff = allOff && (!rank.alive || rank.view.state == instrument::JobState::off);
    if (allOff) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  fmt::print(stderr, "falcon off: job {} did not answer within 10 s\n", name);
  return 1;
}

}  // namespace falcon::jobs
