#include "demo/swap_demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "demo/child_process.h"
#include "demo/dice.h"
#include "demo/interruption.h"
#include "demo/remedy_demo.h"
#include "demo/surroundings.h"
#include "demo/swap_evaluation.h"
#include "inject/outcome.h"
#include "json_text.h"
#include "subcommand.h"
#include "work_folder.h"

namespace falcon::demo {
namespace {

namespace fs = std::filesystem;

constexpr int stages = 2;
constexpr double longestSlow = 120;       // s, until roles were exchanged or were not
constexpr double longestAfterwards = 90;  // s, until that was taken back or was not
constexpr std::size_t iterationsToJudge = 40;

class SwapSession {
 public:
  SwapSession(const SwapDemoOptions& options, const tools::WorkFolder& folder)
      : folder_(folder.path()), programs_(fs::read_symlink("/proc/self/exe").parent_path()) {
    if (!mayUseNamespaces(programs_, folder.sub("trial")))
      throw std::runtime_error("network namespaces are not permitted here, and the slow link is one between them");
    Dice dice(options.seed);
    const Rank stage = dice.below(stages);
    run_.slow = {.kind = CulpritKind::link, .link = {stage, stages + stage}, .bothWays = true};
  }

  SwapRun run() {
    say(fmt::format("1. the job with Falcon: 2 replicas of {} stages on {} nodes; {} will become slow", stages, ranks,
                    nameOf(run_.slow)));
    say("   with NCCL_FALCON_MITIGATE=auto NCCL_FALCON_TRAP_BUDGET=100");
    trainDisturbed();
    say("2. the same job, undisturbed");
    trainUndisturbed();
    return std::move(run_);
  }

 private:
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  static void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

  std::vector<std::string> command(const std::string& log, const std::vector<std::string>& launch,
                                   const std::vector<std::string>& train) const {
    std::vector<std::string> words = {programs_ + "/falcon", "run",          "-n", std::to_string(ranks), "--nodes",
                                      std::to_string(ranks), "--cgroups=try"};
    words.insert(words.end(), launch.begin(), launch.end());
    words.insert(words.end(), {"--", programs_ + "/falcon-train", "--dp", "2", "--pp", std::to_string(stages),
                               "--micro-batches", "16", "--log", file(log), "--quiet"});
    words.insert(words.end(), train.begin(), train.end());
    return words;
  }

  void trainDisturbed() {
    ChildProcess job(command("iterations.jsonl", {"--describe", file("job.json")},
                             {"--duration", fmt::format("{:.0f}", longest), "--until", file("enough")}),
                     {{"NCCL_FALCON", "1"},
                      {"NCCL_FALCON_MITIGATE", "auto"},
                      {"NCCL_FALCON_TRAP_BUDGET", "100"},
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
      injectOrStop();
    }
    follow();
    run_.exitCode = *job.exitCode();
    run_.iterations = parseNumberedLog(readFile(file("iterations.jsonl")));
    run_.said = parseEvents(readFile(file("events.jsonl")));
    if (const std::string words = readFile(file("job.err")); !words.empty()) say(words);
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
      if (one.kind == "mitigation-applied" && one.action == "swap") swappedAt_ = one.time;
      if (one.kind == "mitigation-undone" && one.action == "swap") undoneAt_ = one.time;
    }
  }

  bool areTrainedSince(double time) const {
    std::size_t count = 0;
    for (const NumberedIteration& each : parseNumberedLog(readFile(file("iterations.jsonl"))))
      count += each.start > time ? 1 : 0;
    return count >= iterationsToJudge;
  }

  /// Health, the slow link until its effect and the remedy's are seen, health again until that was undone.
  void injectOrStop() {
    if (ended_ || baselineAt_ == 0 || tools::monotonicNow() < baselineAt_ + healthyFor) return;
    if (!injection_ && run_.slowSince == 0) {
      injection_ = std::make_unique<ChildProcess>(
          std::vector<std::string>{programs_ + "/falcon", "inject", "slow-link", "--describe", file("job.json"),
                                   "--from", std::to_string(run_.slow.link.from), "--to",
                                   std::to_string(run_.slow.link.to), "--both-ways", "--slowdown", "2.5"},
          std::map<std::string, std::string>{}, file("injection.out"), file("injection.err"));
      run_.slowSince = tools::monotonicNow();
      say(fmt::format("  {:5.1f} s  {:<20} {}", tools::monotonicNow() - began_, "(slowed)", nameOf(run_.slow)));
      return;
    }
    if (injection_) {
      if (const auto code = injection_->exitCode())
        throw std::runtime_error(
            fmt::format("the link could not be slowed (code {}): {}", *code, readFile(file("injection.err"))));
      const bool seen = swappedAt_ > 0 && areTrainedSince(swappedAt_);
      if (!seen && tools::monotonicNow() < run_.slowSince + longestSlow) return;
      injection_->terminate();
      injection_->wait();
      injection_.reset();
      run_.slowUntil = tools::monotonicNow();
      say(fmt::format("  {:5.1f} s  {:<20} {}", tools::monotonicNow() - began_, "(healthy again)", nameOf(run_.slow)));
      return;
    }
    const bool seen = undoneAt_ > 0 && areTrainedSince(undoneAt_);
    if (!seen && tools::monotonicNow() < run_.slowUntil + longestAfterwards) return;
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
  SwapRun run_;
  std::unique_ptr<ChildProcess> injection_;
  double began_ = 0, baselineAt_ = 0, swappedAt_ = 0, undoneAt_ = 0;
  std::size_t shown_ = 0;
  bool ended_ = false;
};

}  // namespace

int runSwapDemo(const SwapDemoOptions& options) {
  const tools::WorkFolder folder("demo", options.keepLogs);
  const SwapEvaluation evaluation = evaluate(SwapSession(options, folder).run());
  if (options.json)
    fmt::print("{}\n", tools::jsonText(toJson(evaluation), 2));
  else
    fmt::print("\n{}", toText(evaluation));
  std::fflush(stdout);
  if (evaluation.right()) fmt::print(stderr, "the roles were exchanged when that had paid, and taken back\n");
  for (const std::string& what : evaluation.missing) fmt::print(stderr, "missing: {}\n", what);
  if (options.keepLogs) fmt::print(stderr, "logs: {}\n", folder.path());
  return evaluation.right() ? tools::healthy : tools::toolFailed;
}

}  // namespace falcon::demo
