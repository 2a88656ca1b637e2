#include "jobs/status_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/owned.h"
#include "base/parameters.h"
#include "diagnose/hang_text.h"
#include "jobs/hang_command.h"
#include "jobs/job_files.h"
#include "jobs/running_job.h"
#include "json_text.h"
#include "print.h"

namespace falcon::jobs {
namespace {

using json = nlohmann::json;
using namespace std::chrono_literals;

bool hasFailslow(const JobFiles& job) {
  const RankFile* controller = job.controller();
  return job.running() && controller && controller->view.failslowActive;
}

json toJson(const JobFiles& job) {
  json ranks = json::array();
  for (const RankFile& rank : job.ranks) {
    json ranges = json::object();
    for (const auto& range : rank.ranges)
      ranges[range.text] = {{"seconds", seconds(range.inLastIteration)}, {"times", range.times}};
    ranks.push_back({{"rank", rank.view.identity.jobRank},
                     {"host", rank.view.identity.host},
                     {"pid", rank.view.pid},
                     {"alive", rank.alive},
                     {"state", nameOf(rank.view.state)},
                     {"controller", &rank == job.controller()},
                     {"held", rank.isHeld()},
                     {"iterations", rank.view.iterations},
                     {"iteration_s", rank.view.iterationSeconds},
                     {"calls", rank.view.calls},
                     {"ranges", ranges}});
  }
  const json last = json::parse(job.lastEvent, nullptr, false);
  const auto open = openTooLong(job);
  return {{"job", job.name},
          {"running", job.running()},
          {"failslow_active", hasFailslow(job)},
          {"calls_open_s", open ? json(seconds(*open)) : json()},
          {"ranks", ranks},
          {"last_event", last.is_discarded() ? json() : last}};
}

void print(const JobFiles& job) {
  const RankFile& shown = job.controller() ? *job.controller() : job.ranks.front();
  // What an ended job last did is no state that it is in.
  const int all = shown.view.identity.worldSize;
  const std::string here = all > 0 ? fmt::format("{} of {} ranks here", job.ranks.size(), all)
                                   : fmt::format("{} {} here, of an unknown number (WORLD_SIZE is not set)",
                                                 job.ranks.size(), job.ranks.size() == 1 ? "rank" : "ranks");
  tools::print(stdout, "job {}  {}  {}{}{}\n", job.name, job.running() ? "running" : "ended", here,
               job.running() ? fmt::format("  {}", nameOf(shown.view.state)) : "",
               hasFailslow(job) ? "  FAIL-SLOW" : "");
  tools::print(stdout, "  {:>4}  {:>8}  {:<12}  {:>10}  {:>12}  {:>10}  {}\n", "rank", "pid", "state", "iterations",
               "iteration", "calls", "");
  for (const RankFile& rank : job.ranks) {
    tools::print(
        stdout, "  {:>4}  {:>8}  {:<12}  {:>10}  {:>12}  {:>10}  {}\n", rank.view.identity.jobRank, rank.view.pid,
        rank.alive ? nameOf(rank.view.state) : "gone", rank.view.iterations,
        rank.view.iterationSeconds > 0 ? fmt::format("{:.1f} ms", rank.view.iterationSeconds * 1e3) : "unknown",
        rank.view.calls, std::string(&rank == job.controller() ? "controller" : "") + (rank.isHeld() ? " held" : ""));
  }
  if (const auto open = openTooLong(job))
    tools::print(stdout, "  calls have been open for {}: `falcon status --hang {}` says who waits for whom\n",
                 diagnose::textOf(*open), job.name);
  const json last = json::parse(job.lastEvent, nullptr, false);
  if (last.is_object()) tools::print(stdout, "  last event: {}: {}\n", last.value("kind", ""), last.value("text", ""));
}

/// Those that run, and the newest of those that have ended.
void print(const std::vector<JobFiles>& jobs) {
  constexpr int mostEnded = 3;
  int ended = 0;
  std::string others;
  for (const JobFiles& job : jobs)
    if (job.running() || ++ended <= mostEnded)
      print(job);
    else if (ended <= mostEnded + 8)
      others += (others.empty() ? "" : ", ") + job.name;
    else if (ended == mostEnded + 9)
      others += ", ...";
  if (ended > mostEnded)
    tools::print(stdout, "{} more that have ended, by `falcon status JOB`: {}\n", ended - mostEnded, others);
  if (jobs.empty()) tools::print(stderr, "falcon status: no job of this user ran on this host with NCCL_FALCON=1\n");
}

/// Whether all living ranks here are in that state, or none is.
bool allAre(const JobFiles& job, instrument::JobState state, bool in) {
  return std::all_of(job.ranks.begin(), job.ranks.end(),
                     [&](const RankFile& rank) { return !rank.alive || (rank.view.state == state) == in; });
}

/// Looks ten times a second. False: `patience` is over. A job that ends meanwhile is in every state.
bool waitFor(const std::string& name, instrument::JobState state, bool in, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto job = runningJob(name);
    if (!job || allAre(*job, state, in)) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

/// Who asks the job for something and waits until it is so holds this meanwhile: with two at once on this host, either
/// would take what the other one got for its own. Waits for its turn; ends with the descriptor, so also with a crash.
FileDescriptor turnToAsk(const JobFiles& job) {
  FileDescriptor folder(::open(job.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder)
    while (::flock(folder.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  return folder;
}

}  // namespace

int showStatus(const std::string& name, bool asJson) {
  const auto jobs = findJobs(name);
  if (!jobs) return 1;
  const bool failSlow = std::any_of(jobs->begin(), jobs->end(), hasFailslow);
  if (asJson) {
    json list = json::array();
    for (const JobFiles& job : *jobs) list.push_back(toJson(job));
    fmt::print("{}\n", tools::jsonText(list, 2));
  } else {
    print(*jobs);
  }
  return failSlow ? 3 : 0;
}

int switchOff(const std::string& name) {
  const auto job = runningJobOrSay("off", name);
  if (!job) return 1;
  for (const RankFile& rank : job->ranks)
    if (rank.alive && !send("off", rank, instrument::JobCommand::off)) return 1;
  if (waitFor(name, instrument::JobState::off, true, std::chrono::seconds(10))) return 0;
  tools::print(stderr, "falcon off: job {} did not answer within 10 s\n", name);
  return 1;
}

int suspend(const std::string& name, int seconds) {
  const auto asked = runningJobOrSay("suspend", name);
  if (!asked) return 1;
  const FileDescriptor turn = turnToAsk(*asked);
  const auto job = runningJobOrSay("suspend", name);
  if (!job) return 1;
  if (!allAre(*job, instrument::JobState::suspended, false)) {
    tools::print(stderr, "falcon suspend: job {} is suspended already\n", name);
    return 1;
  }
  if (!send("suspend", anyOf(*job), instrument::JobCommand::suspend, static_cast<std::uint32_t>(seconds))) return 1;
  const auto patience =
      std::min(parameters::trapEntry.value(), Nanoseconds(std::chrono::seconds(seconds))) + Nanoseconds(2s);
  if (waitFor(name, instrument::JobState::suspended, true,
              std::chrono::duration_cast<std::chrono::milliseconds>(patience))) {
    if (runningJob(name)) return 0;
    tools::print(stderr, "falcon suspend: job {} ended meanwhile\n", name);
    return 1;
  }
  tools::print(
      stderr,
      "falcon suspend: job {} is not held, and goes on: not all of its ranks came into the library, or Falcon is "
      "off there; its events say more\n",
      name);
  return 1;
}

int resume(const std::string& name) {
  const auto job = runningJobOrSay("resume", name);
  if (!job) return 1;
  if (allAre(*job, instrument::JobState::suspended, false)) {
    tools::print(stderr, "falcon resume: job {} is not suspended, or no longer\n", name);
    return 1;
  }
  if (!send("resume", anyOf(*job), instrument::JobCommand::resume)) return 1;
  if (waitFor(name, instrument::JobState::suspended, false, std::chrono::seconds(10))) return 0;
  tools::print(stderr, "falcon resume: job {} did not answer within 10 s\n", name);
  return 1;
}

}  // namespace falcon::jobs
