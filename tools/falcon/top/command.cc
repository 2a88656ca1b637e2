#include "top/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/escaped.h"
#include "diagnose/job_members.h"
#include "jobs/hang_command.h"
#include "jobs/job_files.h"
#include "json_text.h"
#include "number_rules.h"
#include "print.h"
#include "top/rank_load.h"
#include "top/screen.h"

namespace falcon::tools {
namespace {

using nlohmann::json;

struct TopOptions {
  std::string job;
  double interval = 1;
  bool once = false, json = false;
};

// Long enough for a few iterations of most jobs.
constexpr Nanoseconds window = 5s;

struct Picture {
  jobs::JobFiles job;
  std::vector<instrument::RankSnapshot> ranks;
  std::vector<top::RankLoad> loads;
  bool failSlow() const {
    const jobs::RankFile* controller = job.controller();
    return job.running() && controller && controller->view.failslowActive;
  }
};

std::optional<Picture> look(const std::string& name) {
  auto job = jobs::chooseJob("top", name);
  if (!job) return std::nullopt;
  Picture picture{std::move(*job), {}, {}};
  picture.ranks = jobs::snapshotsOf(picture.job, SIZE_MAX);
  picture.loads = top::loadsOf(picture.ranks, window);
  return picture;
}

/// The oldest call that it is in; null where it is outside.
const CallRecord* oldestOf(const instrument::RankSnapshot& rank) {
  const CallRecord* oldest = nullptr;
  for (const CallRecord& call : rank.log.inFlight)
    if (!oldest || call.enter < oldest->enter) oldest = &call;
  return oldest;
}

std::string share(std::optional<double> value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "-";
}
std::string milliseconds(std::optional<double> value) {
  return value ? fmt::format("{:.2f} ms", 1e3 * *value) : "-";
}
std::string stateOf(const instrument::RankSnapshot& rank) {
  if (rank.process != instrument::ProcessState::alive) return nameOf(rank.process);
  return rank.log.held ? "held" : nameOf(rank.log.state);
}

std::string textOf(const Picture& picture) {
  std::string text = fmt::format("job {}  {}  {} ranks here{}\n", terminalText(picture.job.name),
                                 picture.job.running() ? "running" : "ended", picture.ranks.size(),
                                 picture.failSlow() ? "  FAIL-SLOW" : "");
  text += fmt::format("{:>5}  {:>8}  {:<10}  {:>12}  {:>11}  {:>8}  {:>8}  {:>8}  {:>9}  {}\n", "rank", "pid", "state",
                      "iteration", "arrival lag", "waiting", "transfer", "outside", "calls/s", "now");
  for (std::size_t i = 0; i < picture.ranks.size(); ++i) {
    const auto& rank = picture.ranks[i];
    const top::RankLoad& load = picture.loads[i];
    const bool measured = load.span > 0;
    const CallRecord* call = oldestOf(rank);
    text += fmt::format("{:>5}  {:>8}  {:<10}  {:>12}  {:>11}  {:>8}  {:>8}  {:>8}  {:>9}  {}\n",
                        rank.log.identity.jobRank, rank.log.pid, stateOf(rank),
                        rank.log.iterationSeconds > 0 ? milliseconds(rank.log.iterationSeconds) : "-",
                        milliseconds(load.lag), share(load.waiting), share(load.transfer),
                        share(measured ? std::optional(std::max(0.0, 1 - load.inside)) : std::nullopt),
                        measured ? fmt::format("{:.0f}", load.callsPerSecond) : "-",
                        call ? fmt::format("{} #{} {:.1f} s", falcon::nameOf(call->operation), call->sequence,
                                           seconds(rank.now - call->enter))
                             : "-");
  }
  return text;
}

json orNull(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

json toJson(const Picture& picture) {
  json ranks = json::array();
  const instrument::CommunicatorNames names = diagnose::namesIn(picture.ranks);
  for (std::size_t i = 0; i < picture.ranks.size(); ++i) {
    const auto& rank = picture.ranks[i];
    const top::RankLoad& load = picture.loads[i];
    const CallRecord* call = oldestOf(rank);
    json now;
    if (call)
      now = {{"operation", falcon::nameOf(call->operation)},
             {"sequence", call->sequence},
             {"communicator", fmt::format("{:016x}", call->communicator)},
             {"communicator_name", names.titleOf(call->communicator)},
             {"seconds", seconds(rank.now - call->enter)}};
    ranks.push_back({{"rank", rank.log.identity.jobRank},
                     {"pid", rank.log.pid},
                     {"host", rank.log.identity.host},
                     {"process", nameOf(rank.process)},
                     {"state", nameOf(rank.log.state)},
                     {"held", rank.isHeld()},
                     {"iterations", rank.log.iterations},
                     {"iteration_s", rank.log.iterationSeconds > 0 ? json(rank.log.iterationSeconds) : json()},
                     {"arrival_lag_s", orNull(load.lag)},
                     {"waiting_share", orNull(load.waiting)},
                     {"transfer_share", orNull(load.transfer)},
                     {"inside_share", load.span > 0 ? json(load.inside) : json()},
                     {"calls_per_s", load.span > 0 ? json(load.callsPerSecond) : json()},
                     {"span_s", load.span},
                     {"now", now}});
  }
  return {{"job", picture.job.name},
          {"running", picture.job.running()},
          {"failslow_active", picture.failSlow()},
          {"ranks", ranks}};
}

int once(const TopOptions& options) {
  const auto picture = look(options.job);
  if (!picture) return toolFailed;
  if (options.json)
    fmt::print("{}\n", jsonText(toJson(*picture), 2));
  else
    printLines(stdout, textOf(*picture));
  return picture->failSlow() ? failSlowFound : healthy;
}

int live(const TopOptions& options) {
  auto picture = look(options.job);
  if (!picture) return toolFailed;
  const std::string name = picture->job.name;
  std::string last;
  {
    top::Screen screen;
    const auto interval = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(options.interval));
    do {
      if (auto next = look(name)) picture = std::move(next);
      last = textOf(*picture);
      screen.show(last);
    } while (picture->job.running() && screen.pause(interval));
  }
  // What was seen last stays on the terminal.
  printLines(stdout, last);
  return picture->failSlow() ? failSlowFound : healthy;
}

}  // namespace

void addTopCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand(
      "top", "The ranks of a job, live: iteration time, arrival lag, and how much of the time they wait or transfer");
  command->add_option("job", options->job, "Name of the job; without: the newest that runs, or else the newest");
  command->add_option("--interval", options->interval, "Seconds between two looks")->check(numberFrom(0.1, 3600));
  command->add_flag("--once", options->once, "Print what there is and end, as it is done where stdout is no terminal");
  command->add_flag("--json", options->json, "Once, as JSON on stdout");
  command->callback([options, &exitCode] {
    const bool plain = options->once || options->json || ::isatty(STDOUT_FILENO) == 0;
    exitCode = plain ? once(*options) : live(*options);
  });
}

}  // namespace falcon::tools
