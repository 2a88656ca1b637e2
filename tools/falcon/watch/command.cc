#include "watch/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/event.h"
#include "events/event_tail.h"
#include "instrument/events_path.h"
#include "jobs/running_job.h"
#include "number_rules.h"
#include "print.h"
#include "watch/event_handler.h"

namespace falcon::tools {
namespace {

using namespace std::chrono_literals;

struct WatchOptions {
  std::string job, events, run, post;
  std::vector<std::string> kinds;
  double seconds = 10;
  bool fromStart = false;
};

volatile sig_atomic_t stopped = 0;

void stopOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int number) { stopped = number; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(number, &action, nullptr);
  }
}

void complain(const std::string& what) {
  print(stderr, "falcon watch: {}\n", what);
}

bool isRunning(const std::string& folder) {
  const auto jobs = jobs::findJobs();
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const jobs::JobFiles& job) { return job.folder == folder && job.running(); });
}

/// The folder of the running job that is meant; "" and words on stderr where that is not clear.
std::string folderOf(const std::string& name) {
  std::vector<jobs::JobFiles> found = jobs::findJobs();
  std::erase_if(found, [&](const jobs::JobFiles& job) {
    return !job.running() || (!name.empty() && job.name != name && job.ranks.front().view.identity.job != name);
  });
  if (found.size() == 1) return found.front().folder;
  if (found.empty() && name.empty())
    complain("no job of this user runs on this host with NCCL_FALCON=1");
  else if (found.empty())
    complain(jobs::noRunningJob(name));
  else
    complain("several jobs run here; say which (`falcon status` lists them)");
  return "";
}

std::string kindOf(const std::string& line) {
  const auto event = nlohmann::json::parse(line, nullptr, false);
  return event.is_object() && event.contains("kind") && event["kind"].is_string() ? event["kind"].get<std::string>()
                                                                                  : "";
}

int watch(const WatchOptions& options) {
  const std::string folder = options.events.empty() || !options.job.empty() ? folderOf(options.job) : "";
  if (folder.empty() && (options.events.empty() || !options.job.empty())) return toolFailed;
  stopOnSignals();
  std::string path = options.events.empty() ? instrument::eventsPath(folder) : options.events;
  const std::string job = std::filesystem::path(folder).filename();
  std::optional<events::EventTail> tail(std::in_place, path, options.fromStart, job);
  const std::set<std::string> kinds(options.kinds.begin(), options.kinds.end());
  const std::chrono::milliseconds limit(static_cast<std::int64_t>(options.seconds * 1e3));

  std::vector<std::unique_ptr<watch::EventHandler>> handlers;
  const auto handler = [&](const char* name, watch::MakeDelivery deliver) {
    handlers.push_back(std::make_unique<watch::EventHandler>(watch::HandlerRules{.name = name, .limit = limit},
                                                             std::move(deliver), complain));
  };
  if (!options.run.empty())
    handler("the command", [&](const std::string& line) { return watch::deliveryByShell(options.run, line); });
  if (!options.post.empty())
    handler("the post", [&](const std::string& line) { return watch::deliveryByPost(options.post, limit, line); });

  // Without a job's name a file is followed until somebody ends us.
  bool over = false;
  for (Nanoseconds asked{0};; std::this_thread::sleep_for(50ms)) {
    const auto now = std::chrono::steady_clock::now();
    if (!folder.empty() && !over && now.time_since_epoch() - asked > 1s) {
      asked = now.time_since_epoch();
      // A young job's folder may not say yet where the events are.
      if (const std::string told = instrument::eventsPath(folder); options.events.empty() && told != path)
        tail.emplace(path = told, true, job);
      over = !isRunning(folder);
    }
    for (const std::string& line : tail->take()) {
      if (!kinds.empty() && !kinds.contains(kindOf(line))) continue;
      if (handlers.empty()) print(stdout, "{}\n", line), std::fflush(stdout);
      for (const auto& each : handlers) each->add(line);
    }
    bool idle = true;
    for (const auto& each : handlers) each->tick(now), idle = idle && each->idle();
    if (stopped || (over && idle)) break;
  }
  int failures = 0;
  for (const auto& each : handlers) failures += each->failures();
  if (stopped) return 128 + stopped;
  return failures > 0 ? toolFailed : healthy;
}

}  // namespace

void addWatchCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* command = app.add_subcommand(
      "watch", "Follow a job's events until it ends: print them, run a command for each, or post each to a URL");
  command->add_option("job", options->job, "Name of a running job; may be left out where only one runs");
  command->add_option(
      "--events", options->events,
      "A file of events instead of the job's own, such as one from another host; without a job it is followed until "
      "Ctrl-C");
  command->add_option("--run", options->run,
                      "Shell command, run for each event, one at a time, with the event as JSON on stdin and its kind "
                      "in FALCON_EVENT_KIND");
  command
      ->add_option("--post", options->post, "http:// or https:// address that each event is posted to as JSON, by curl")
      ->check(CLI::Validator(
          [](std::string& url) {
            return url.starts_with("http://") || url.starts_with("https://")
                       ? std::string()
                       : url + " does not begin with http:// or https://";
          },
          "", ""));
  std::set<std::string> kinds;
  for (int kind = 0; kind < eventKindCount; ++kind) kinds.insert(nameOf(static_cast<EventKind>(kind)));
  command->add_option("--kinds", options->kinds, "Only events of these kinds, e.g. onset,verdict,relief")
      ->delimiter(',')
      ->check([kinds](const std::string& kind) {
        return kinds.contains(kind) ? ""
                                    : fmt::format("no event is of kind {}; there are {}", kind, fmt::join(kinds, ", "));
      });
  command->add_option("--time-limit", options->seconds, "Seconds after which a command or post is killed: 0.1 to 3600")
      ->check(numberFrom(0.1, 3600))
      ->capture_default_str();
  command->add_flag("--from-start", options->fromStart, "Begin with the events that are there already");
  command->callback([options, &exitCode] { exitCode = watch(*options); });
}

}  // namespace falcon::tools
