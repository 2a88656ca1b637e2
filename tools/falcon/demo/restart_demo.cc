#include "demo/restart_demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "demo/child_process.h"
#include "demo/dice.h"
#include "demo/interruption.h"
#include "demo/remedy_demo.h"
#include "demo/restart_evaluation.h"
#include "demo/surroundings.h"
#include "inject/outcome.h"
#include "inject/processor_use.h"
#include "json_text.h"
#include "machine/cpu_cgroup.h"
#include "machine/description.h"
#include "subcommand.h"
#include "work_folder.h"

namespace falcon::demo {
namespace {

namespace fs = std::filesystem;

constexpr double factor = 3;  // so much less of a processor the slow place gives than the rank used
constexpr std::size_t iterationsAfter = 40;
constexpr auto observation = std::chrono::seconds(3);

class RestartSession {
 public:
  RestartSession(const RestartDemoOptions& options, const tools::WorkFolder& folder)
      : folder_(folder.path()),
        programs_(fs::read_symlink("/proc/self/exe").parent_path()),
        namespaces_(mayUseNamespaces(programs_, folder.sub("trial"))) {
    if (!mayUseCgroups(programs_, folder.sub("trial")))
      throw std::runtime_error("cpu cgroups are not permitted here, and a slow place is made with one");
    Dice dice(options.seed);
    run_.slow = dice.below(ranks);
  }

  RestartRun run() {
    say(fmt::format(
        "1. the job with Falcon: {} ranks, one data-parallel replica; the place of rank {} will become slow", ranks,
        run_.slow));
    say("   with NCCL_FALCON_MITIGATE=auto NCCL_FALCON_TRAP_BUDGET=100 NCCL_FALCON_RESTART_EXPECTED=12s");
    trainDisturbed();
    say("2. the same job, undisturbed");
    trainUndisturbed();
    return std::move(run_);
  }

 private:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  static void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

  std::vector<std::string> command(const std::string& name, std::vector<std::string> launch,
                                   const std::vector<std::string>& train) const {
    std::vector<std::string> words = {programs_ + "/falcon", "run", "-n", std::to_string(ranks), "--cgroups"};
    if (namespaces_) words.insert(words.end(), {"--nodes", std::to_string(ranks)});
    words.insert(words.end(), launch.begin(), launch.end());
    words.insert(words.end(), {"--", programs_ + "/falcon-train", "--dp", "1", "--pp", std::to_string(ranks),
                               "--micro-batches", "16", "--log", file(name), "--quiet"});
    words.insert(words.end(), train.begin(), train.end());
    return words;
  }

  void trainDisturbed() {
    ChildProcess job(command("iterations.jsonl", {"--describe", file("job.json"), "--restarts", "1", "--spares", "1"},
                             {"--checkpoints", file("checkpoints"), "--checkpoint-every", "25", "--duration",
                              fmt::format("{:.0f}", longest), "--until", file("enough")}),
                     {{"NCCL_FALCON", "1"},
                      {"NCCL_FALCON_MITIGATE", "auto"},
                      {"NCCL_FALCON_TRAP_BUDGET", "100"},
                      {"NCCL_FALCON_RESTART_EXPECTED", "12s"},
                      {"NCCL_FALCON_JOB", fmt::format("demo-{}", getpid())},
                      {"NCCL_FALCON_EVENTS", file("events.jsonl")}},
                     file("job.out"), file("job.err"));
    const double limit = tools::monotonicNow() + longest + 60;
    while (!job.exitCode()) {
      if (tools::monotonicNow() > limit)
        throw std::runtime_error("the job did not end in time\n" + readFile(file("job.err")));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      throwIfInterrupted();
      follow();
      slowDown();
      endWhenSeen();
    }
    follow();
    run_.exitCode = *job.exitCode();
    run_.iterations = parseNumberedLog(readFile(file("iterations.jsonl")));
    run_.said = parseEvents(readFile(file("events.jsonl")));
    const std::string words = readFile(file("job.err"));
    if (!words.empty()) say(words);
  }

  void follow() {
    if (began_ == 0) {
      const auto iterations = parseNumberedLog(readFile(file("iterations.jsonl")));
      if (!iterations.empty()) began_ = iterations.front().start;
    }
    const auto said = parseEvents(readFile(file("events.jsonl")));
    for (; shown_ < said.size(); ++shown_) {
      const Said& one = said[shown_];
      say(fmt::format("  {:5.1f} s  {:<20} {}", one.time - began_, one.kind, one.text));
      if (one.kind == "baseline-taken" && baselineAt_ == 0) baselineAt_ = one.time;
      if (one.kind == "mitigation-applied" && one.action == "restart") restartAt_ = one.time;
    }
    if (const auto job = tools::readDescription(file("job.json")))
      if (const auto place = tools::rankOf(*job, run_.slow)) run_.placeAfterwards = place->cgroup;
  }

  /// It stays slow: who has that place is slow, whoever it is.
  void slowDown() {
    if (run_.slowSince > 0 || baselineAt_ == 0 || tools::monotonicNow() < baselineAt_ + healthyFor) return;
    const auto job = tools::readDescription(file("job.json"));
    const auto rank = job ? tools::rankOf(*job, run_.slow) : Result<tools::RankDescription>(job.error());
    if (!rank) throw std::runtime_error(rank.error().message());
    tools::ProcessorUse use(rank->process);
    std::this_thread::sleep_for(observation);
    const double cores = use.cores().value_or(0);
    const tools::CpuCgroup place(rank->cgroup);
    const double quota = std::max(tools::CpuCgroup::leastQuota, cores / factor);
    if (const Status set = place.setQuota(quota); !set) throw std::runtime_error(set.error().message());
    run_.slowSince = tools::monotonicNow();
    run_.slowPlace = rank->cgroup;
    say(fmt::format("  {:5.1f} s  {:<20} the place of rank {} gives {:.2f} cores from now on; it used {:.2f}",
                    tools::monotonicNow() - began_, "(slowed)", run_.slow, quota, cores));
  }

  void endWhenSeen() {
    if (restartAt_ == 0 || ended_ || run_.placeAfterwards == run_.slowPlace) return;
    const auto iterations = parseNumberedLog(readFile(file("iterations.jsonl")));
    std::size_t after = 0;
    for (const NumberedIteration& each : iterations) after += each.start > restartAt_ ? 1 : 0;
    if (after < iterationsAfter) return;
    std::ofstream(file("enough")).close();
    ended_ = true;
  }

  void trainUndisturbed() {
    if (run_.iterations.empty()) return;
    ChildProcess job(command("undisturbed.jsonl", {},
                             {"--iterations", std::to_string(run_.iterations.back().number + 1), "--duration",
                              fmt::format("{:.0f}", longestUndisturbed)}),
                     {{"NCCL_FALCON", "0"}}, file("undisturbed.out"), file("undisturbed.err"));
    if (const int code = job.wait(); code != 0)
      throw std::runtime_error(
          fmt::format("the undisturbed job ended with code {}\n{}", code, readFile(file("undisturbed.err"))));
    run_.undisturbed = parseNumberedLog(readFile(file("undisturbed.jsonl")));
  }

  const std::string folder_, programs_;
  const bool namespaces_;
  RestartRun run_;
  double began_ = 0, baselineAt_ = 0, restartAt_ = 0;
  std::size_t shown_ = 0;
  bool ended_ = false;
};

}  // namespace

int runRestartDemo(const RestartDemoOptions& options) {
  const tools::WorkFolder folder("demo", options.keepLogs);
  const RestartEvaluation evaluation = evaluate(RestartSession(options, folder).run());
  if (options.json)
    fmt::print("{}\n", tools::jsonText(toJson(evaluation), 2));
  else
    fmt::print("\n{}", toText(evaluation));
  std::fflush(stdout);
  if (evaluation.right()) fmt::print(stderr, "the job was restarted when that had paid, without its slow place\n");
  for (const std::string& what : evaluation.missing) fmt::print(stderr, "missing: {}\n", what);
  if (options.keepLogs) fmt::print(stderr, "logs: {}\n", folder.path());
  return evaluation.right() ? tools::healthy : tools::toolFailed;
}

}  // namespace falcon::demo
