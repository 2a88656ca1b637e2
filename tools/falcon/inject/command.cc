#include "inject/command.h"

#include <signal.h>

#include <cerrno>
#include <functional>
#include <memory>

#include "inject/injection.h"
#include "machine/cpu_cgroup.h"
#include "number_rules.h"

namespace falcon::tools {
namespace {

/// What all injections are asked with.
struct CommonOptions {
  std::string describe;
  double duration = 0;  ///< seconds; 0: until a signal or the job's end
  bool json = false;
};

using Make = std::function<Result<std::unique_ptr<Injection>>(const JobDescription&)>;

constexpr Nanoseconds betweenObservations = 200ms;
constexpr double mostSeconds = 365 * 86'400.0;
constexpr double mostCores = 10'000;
constexpr double mostFactor = 1000;

sigset_t blockEndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Until the time is over, a signal comes, or the job has ended.
void holdOn(Injection& injection, const JobDescription& job, double duration, const sigset_t& signals) {
  auto& clock = SystemClock::instance();
  const Nanoseconds start = clock.now();
  for (;;) {
    Nanoseconds wait = betweenObservations;
    if (duration > 0) {
      const Nanoseconds left = start + Nanoseconds(static_cast<std::int64_t>(duration * 1e9)) - clock.now();
      if (left <= 0ns) return;
      wait = std::min(wait, left);
    }
    const timespec time{wait / 1s, (wait % 1s).count()};
    if (::sigtimedwait(&signals, nullptr, &time) > 0) return;
    if (::kill(job.supervisor, 0) != 0 && errno == ESRCH) return;
    injection.observe();
  }
}

int inject(const CommonOptions& options, const Make& make) {
  const sigset_t signals = blockEndingSignals();
  const auto job = readDescription(options.describe);
  if (!job) {
    fmt::print(stderr, "falcon inject: {}\n", job.error().message());
    return toolFailed;
  }
  const auto injection = make(*job);
  if (!injection) {
    fmt::print(stderr, "falcon inject: {}\n", injection.error().message());
    return injection.error().code() == ErrorCode::invalidArgument ? badUsage : toolFailed;
  }
  fmt::print(stderr, "falcon inject: in force\n");
  holdOn(**injection, *job, options.duration, signals);
  const Outcome outcome = (*injection)->relieve();
  fmt::print("{}\n", options.json ? toJson(outcome) : explain(outcome));
  if (effective(outcome)) return healthy;
  fmt::print(stderr, "falcon inject: it had no effect: {}\n", explain(outcome));
  return toolFailed;
}

CLI::App* addKind(CLI::App& app, const char* name, const char* description,
                  const std::shared_ptr<CommonOptions>& common) {
  auto* command = app.add_subcommand(name, description);
  command->add_option("--describe", common->describe, "What `falcon run --describe` wrote")->required();
  command->add_option("--for", common->duration, "Seconds; without it until SIGINT, SIGTERM or the job's end")
      ->check(numberAbove(0, mostSeconds));
  command->add_flag("--json", common->json, "The outcome as one JSON object");
  return command;
}

void addSlowRank(CLI::App& app, int& exitCode) {
  auto common = std::make_shared<CommonOptions>();
  auto rank = std::make_shared<Rank>();
  auto slowdown = std::make_shared<RankSlowdown>();
  auto* command = addKind(app, "slow-rank", "Gives one rank less processor time than it needs", common);
  command->add_option("--rank", *rank, "The victim")->required();
  auto* how = command->add_option_group("how strongly");
  how->add_option("--quota", slowdown->quota, "Cores it may use, e.g. 0.2")
      ->check(numberFrom(CpuCgroup::leastQuota, mostCores));
  how->add_option("--factor", slowdown->factor, "It may use its present share divided by this, e.g. 2")
      ->check(numberAbove(1, mostFactor));
  how->require_option(1);
  command->callback([=, &exitCode] {
    exitCode = inject(*common, [=](const JobDescription& job) { return slowRank(job, *rank, *slowdown); });
  });
}

void addSlowLink(CLI::App& app, int& exitCode) {
  auto common = std::make_shared<CommonOptions>();
  auto link = std::make_shared<Link>();
  auto bothWays = std::make_shared<bool>(false);
  auto slowdown = std::make_shared<LinkSlowdown>();
  auto* command = addKind(app, "slow-link", "Limits what one rank can send to another", common);
  command->add_option("--from", link->from, "The sending rank")->required();
  command->add_option("--to", link->to, "The receiving rank")->required();
  command->add_flag("--both-ways", *bothWays, "The opposite direction too");
  auto* how = command->add_option_group("how strongly");
  how->add_option("--slowdown", slowdown->iterations, "Iterations shall take this many times as long, e.g. 2")
      ->check(numberAbove(1, mostFactor));
  how->add_option("--rate", slowdown->bitsPerSecond, "Bits a second; k, M and G are understood, e.g. 100M")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"k", 1e3}, {"m", 1e6}, {"g", 1e9}}))
      ->check(numberFrom(leastBitsPerSecond, mostBitsPerSecond));
  how->require_option(1);
  command->add_option("--throttle-file", slowdown->throttleFile,
                      "For a job without --nodes: its NCCL_FALCON_INJECT_LINK_FILE");
  command->callback([=, &exitCode] {
    exitCode = inject(*common, [=](const JobDescription& job) { return slowLink(job, *link, *bothWays, *slowdown); });
  });
}

void addMemoryHog(CLI::App& app, int& exitCode) {
  auto common = std::make_shared<CommonOptions>();
  auto rank = std::make_shared<Rank>();
  auto* command = addKind(app, "memory-hog", "Streams through memory beside one rank, inside its cgroup", common);
  command->add_option("--rank", *rank, "The victim")->required();
  command->callback(
      [=, &exitCode] { exitCode = inject(*common, [=](const JobDescription& job) { return memoryHog(job, *rank); }); });
}

}  // namespace

void addInjectCommand(CLI::App& app, int& exitCode) {
  auto* command = app.add_subcommand("inject", "Makes a rank or a link of a running job slow, and undoes it");
  command->footer("Exit code 0 where the victim really was slowed, 1 where not. Always undone, also when killed.\n");
  command->require_subcommand(1);
  addSlowRank(*command, exitCode);
  addSlowLink(*command, exitCode);
  addMemoryHog(*command, exitCode);
}

}  // namespace falcon::tools
