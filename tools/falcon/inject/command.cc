#include "inject/command.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>

#include "ending_signals.h"
#include "inject/injection.h"
#include "inject/victim.h"
#include "machine/cpu_cgroup.h"
#include "number_rules.h"

namespace falcon::tools {
namespace {

/// What all injections are asked with.
struct CommonOptions {
  std::string describe;  ///< one of these three
  std::string job;
  int process = 0;
  double duration = 0;  ///< seconds; 0: until a signal or the job's end
  bool json = false;
};

using Make = std::function<Result<std::unique_ptr<Injection>>(const JobDescription&)>;

constexpr Nanoseconds betweenObservations = 200ms;
constexpr double mostSeconds = 365 * 86'400.0;
constexpr double mostCores = 10'000;
constexpr double mostFactor = 1000;

// Until the time is over, a signal comes, or the job has ended.
void holdOn(Injection& injection, const JobDescription& job, double duration, const sigset_t& signals) {
  auto& clock = SystemClock::instance();
  const Nanoseconds start = clock.now();
  bool said = false;
  for (;;) {
    Nanoseconds wait = betweenObservations;
    if (duration > 0) {
      const Nanoseconds left = start + fromSeconds(duration) - clock.now();
      if (left <= 0ns) return;
      wait = std::min(wait, left);
    }
    const timespec time{wait / 1s, (wait % 1s).count()};
    if (::sigtimedwait(&signals, nullptr, &time) > 0) return;
    if (::kill(job.supervisor, 0) != 0 && errno == ESRCH) return;
    if (injection.isUnguarded()) {
      fmt::print(stderr, "falcon inject: the process that was to undo it was killed: undone now\n");
      return;
    }
    if (!injection.observe() || said) continue;
    fmt::print(stderr, "falcon inject: the victim is slowed\n");
    said = true;
  }
}

Result<JobDescription> jobOf(const CommonOptions& options, Rank victim) {
  if (options.process > 0) return describeProcess(options.process);
  if (!options.job.empty()) return describeJob(options.job, victim);
  return readDescription(options.describe);
}

int codeOf(const Error& error) {
  fmt::print(stderr, "falcon inject: {}\n", error.message());
  return error.code() == ErrorCode::invalidArgument ? badUsage : toolFailed;
}

/// @param victim  whose end ends the injection
int inject(const CommonOptions& options, Rank victim, const Make& make) {
  const sigset_t signals = blockEndingSignals();
  const auto job = jobOf(options, victim);
  if (!job) return codeOf(job.error());
  const auto iterations = [&] { return options.job.empty() ? Iterations() : iterationsOf(options.job); };
  const double iterationBefore = iterations().seconds;
  const auto injection = make(*job);
  const timespec now{};
  if (const int signal = injection ? 0 : ::sigtimedwait(&signals, nullptr, &now); signal > 0) {
    fmt::print(stderr, "falcon inject: not injected: ended by signal {}\n", signal);
    return 128 + signal;
  }
  if (!injection) return codeOf(injection.error());
  fmt::print(stderr, "falcon inject: in force\n");
  const Iterations first = iterations();
  holdOn(**injection, *job, options.duration, signals);
  const Iterations last = iterations();
  Outcome outcome = (*injection)->relieve();
  outcome.iterationBefore = iterationBefore;
  outcome.iterationsEnded = last.ended - std::min(first.ended, last.ended);
  outcome.iterationDuring = outcome.iterationsEnded > 0 ? last.seconds : 0;
  fmt::print("{}\n", options.json ? toJson(outcome) : explain(outcome));
  if (effective(outcome)) return healthy;
  fmt::print(stderr, "falcon inject: it had no effect: {}\n", explain(outcome));
  return toolFailed;
}

CLI::App* addKind(CLI::App& app, const char* name, const char* description,
                  const std::shared_ptr<CommonOptions>& common, bool byProcess = true) {
  auto* command = app.add_subcommand(name, description);
  auto* victim = command->add_option_group("victim", "Whose process or link");
  victim->add_option("--describe", common->describe, "What `falcon run --describe` wrote")->check(notEmpty());
  victim->add_option("--job", common->job, "A running job of yours on this host, as `falcon status` names it")
      ->check(notEmpty());
  if (byProcess)
    victim->add_option("--pid", common->process, "A process of yours, of any program")
        ->check(wholeNumber())
        ->check(numberFrom(2, 1 << 22));
  victim->require_option(1);
  command->add_option("--for", common->duration, "Seconds; without it until SIGINT, SIGTERM or the job's end")
      ->check(numberAbove(0, mostSeconds));
  command->add_flag("--json", common->json, "The outcome as one JSON object");
  return command;
}

std::shared_ptr<Rank> addRank(CLI::App* command) {
  auto rank = std::make_shared<Rank>(-1);
  command->add_option("--rank", *rank, "The victim; not with --pid");
  return rank;
}

/// A process is the only rank of what describeProcess() makes of it.
Rank rankFor(const CommonOptions& options, Rank rank) {
  if (options.process > 0 && rank >= 0)
    throw CLI::ValidationError("--rank says whom of a job: leave it out with --pid");
  if (options.process <= 0 && rank < 0) throw CLI::RequiredError("--rank");
  return std::max(rank, 0);
}

void addSlowRank(CLI::App& app, int& exitCode) {
  auto common = std::make_shared<CommonOptions>();
  auto slowdown = std::make_shared<RankSlowdown>();
  auto* command = addKind(app, "slow-rank", "Gives one rank less processor time than it needs", common);
  const auto rank = addRank(command);
  auto* how = command->add_option_group("how strongly");
  how->add_option("--quota", slowdown->quota, "Cores it may use, e.g. 0.2")
      ->check(numberFrom(CpuCgroup::leastQuota, mostCores));
  how->add_option("--factor", slowdown->factor, "It may use its present share divided by this, e.g. 2")
      ->check(numberAbove(1, mostFactor));
  how->require_option(1);
  command->callback([=, &exitCode] {
    const Rank victim = rankFor(*common, *rank);
    exitCode = inject(*common, victim, [=](const JobDescription& job) { return slowRank(job, victim, *slowdown); });
  });
}

void addSlowLink(CLI::App& app, int& exitCode) {
  auto common = std::make_shared<CommonOptions>();
  auto link = std::make_shared<Link>();
  auto bothWays = std::make_shared<bool>(false);
  auto slowdown = std::make_shared<LinkSlowdown>();
  auto* command = addKind(app, "slow-link", "Limits what one rank can send to another", common, false);
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
  command
      ->add_option("--throttle-file", slowdown->throttleFile,
                   "For a job without --nodes: its NCCL_FALCON_INJECT_LINK_FILE")
      ->check(notEmpty());
  command->callback([=, &exitCode] {
    exitCode = inject(*common, link->from,
                      [=](const JobDescription& job) { return slowLink(job, *link, *bothWays, *slowdown); });
  });
}

/// What needs no further words.
void addPlain(CLI::App& app, int& exitCode, const char* name, const char* description,
              Result<std::unique_ptr<Injection>> (*make)(const JobDescription&, Rank)) {
  auto common = std::make_shared<CommonOptions>();
  auto* command = addKind(app, name, description, common);
  const auto rank = addRank(command);
  command->callback([=, &exitCode] {
    const Rank victim = rankFor(*common, *rank);
    exitCode = inject(*common, victim, [=](const JobDescription& job) { return make(job, victim); });
  });
}

}  // namespace

void addInjectCommand(CLI::App& app, int& exitCode) {
  auto* command = app.add_subcommand("inject", "Makes a rank or a link of a running job slow, and undoes it");
  command->footer(
      "Exit code 0 where the victim really was slowed, 1 where not. Always undone, also when killed.\n"
      "Harms own processes only; links only in network namespaces other than the machine's, or, with\n"
      "--throttle-file, inside the job's own transport.\n");
  command->require_subcommand(1);
  addSlowRank(*command, exitCode);
  addSlowLink(*command, exitCode);
  addPlain(*command, exitCode, "hang", "Stops one rank: it is there and answers nobody", hangRank);
  addPlain(*command, exitCode, "memory-hog", "Streams through memory beside one rank, inside its cgroup", memoryHog);
}

}  // namespace falcon::tools
