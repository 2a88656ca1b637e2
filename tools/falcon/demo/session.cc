#include "demo/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "demo/child_process.h"
#include "demo/interruption.h"

namespace falcon::demo {
namespace {

// What a user would set as well to have it work around what it finds, as often as the demo's short run needs.
constexpr std::pair<const char*, const char*> jobSettings[] = {{"NCCL_FALCON_MITIGATE", "auto"},
                                                               {"NCCL_FALCON_TRAP_BUDGET", "100"}};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string tail(const std::string& text, size_t lines) {
  size_t from = text.size();
  for (size_t i = 0; i <= lines && from != std::string::npos && from > 0; ++i) from = text.rfind('\n', from - 1);
  return from == std::string::npos ? text : text.substr(from + 1);
}

/// The demo's job in the making: files, processes, what was said so far.
class Session {
 public:
  explicit Session(const SessionInput& input) : input_(input) {}

  Run run() {
    ChildProcess job(jobCommand(), jobEnvironment(), file("job.out"), file("job.err"));
    const double limit = now() + input_.shape.seconds + 90;
    while (!job.exitCode()) {
      if (now() > limit)
        throw std::runtime_error("the job did not end in time\n" + tail(readFile(file("job.err")), 20));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      throwIfInterrupted();
      followLog();
      followEvents();
      inject();
    }
    clearProgress();
    followEvents();
    if (*job.exitCode() != 0)
      throw std::runtime_error(
          fmt::format("the job ended with code {}\n{}", *job.exitCode(), tail(readFile(file("job.err")), 20)));
    Run run;
    run.iterations = parseTrainerLog(readFile(file("iterations.jsonl")));
    run.said = parseEvents(readFile(file("events.jsonl")));
    for (Planned& planned : planned_) run.truths.push_back(collect(planned));
    return run;
  }

 private:
  struct Planned {
    Injection injection;
    std::string output;
    std::unique_ptr<ChildProcess> process;
  };

  std::string file(const std::string& name) const { return input_.folder + "/" + name; }

  std::vector<std::string> jobCommand() const {
    const JobShape& shape = input_.shape;
    std::vector<std::string> command = {input_.programs + "/falcon", "run",        "-n",
                                        std::to_string(shape.ranks), "--describe", file("job.json")};
    if (input_.namespaces) command.insert(command.end(), {"--nodes", std::to_string(shape.nodes)});
    if (input_.cgroups) command.push_back("--cgroups");
    command.insert(command.end(),
                   {"--", input_.programs + "/falcon-train", "--dp", std::to_string(shape.dataParallel), "--pp",
                    std::to_string(shape.pipelineParallel), "--micro-batches", "32", "--iterations", "100000",
                    "--duration", fmt::format("{:.0f}", shape.seconds), "--log", file("iterations.jsonl"), "--quiet"});
    return command;
  }

  std::map<std::string, std::string> jobEnvironment() const {
    std::map<std::string, std::string> environment = {{"NCCL_FALCON", input_.withFalcon ? "1" : "0"},
                                                      {"NCCL_FALCON_EVENTS", file("events.jsonl")},
                                                      {"NCCL_FALCON_JOB", fmt::format("demo-{}", getpid())}};
    for (const auto& [name, value] : jobSettings) environment[name] = value;
    if (!input_.namespaces) environment["NCCL_FALCON_INJECT_LINK_FILE"] = file("throttled-links");
    if (!input_.namespaces) environment["NCCL_SHM_DISABLE"] = "1";
    return environment;
  }

  void followLog() {
    const auto iterations = parseTrainerLog(readFile(file("iterations.jsonl")));
    if (iterations.empty()) return;
    if (!began_) {
      began_ = iterations.front().start;
      for (const Injection& injection : input_.injections)
        planned_.push_back({injection, file(fmt::format("injection-{}.json", planned_.size())), nullptr});
    }
    if (!input_.terminal || now() - lastProgress_ < 1) return;
    lastProgress_ = now();
    fmt::print(stderr, "\r\x1b[K  {:5.0f} s  iteration {}  {:.0f} ms  loss {:.3f}", now() - *began_, iterations.size(),
               (iterations.back().end - iterations.back().start) * 1e3, iterations.back().loss);
    std::fflush(stderr);
  }

  void clearProgress() const {
    if (input_.terminal) fmt::print(stderr, "\r\x1b[K");
  }

  void followEvents() {
    const auto said = parseEvents(readFile(file("events.jsonl")));
    for (; shown_ < said.size(); ++shown_) {
      clearProgress();
      const double at = began_ ? said[shown_].time - *began_ : 0;
      input_.say(fmt::format("  {:5.1f} s  {:<20} {}", at, said[shown_].kind, said[shown_].text));
    }
  }

  void inject() {
    if (!began_) return;
    for (Planned& planned : planned_) {
      if (planned.process || now() < *began_ + planned.injection.start) continue;
      planned.process =
          std::make_unique<ChildProcess>(injectCommand(planned.injection), std::map<std::string, std::string>{},
                                         planned.output, planned.output + ".err");
    }
  }

  std::vector<std::string> injectCommand(const Injection& injection) const {
    const Culprit& culprit = injection.culprit;
    std::vector<std::string> command = {input_.programs + "/falcon", "inject"};
    if (culprit.kind == CulpritKind::rank) {
      command.insert(command.end(), {"slow-rank", "--rank", std::to_string(culprit.rank), "--factor",
                                     fmt::format("{:.2f}", injection.factor)});
    } else {
      command.insert(command.end(),
                     {"slow-link", "--from", std::to_string(culprit.link.from), "--to", std::to_string(culprit.link.to),
                      "--slowdown", fmt::format("{:.2f}", injection.factor)});
      if (culprit.bothWays) command.push_back("--both-ways");
      if (!input_.namespaces) command.insert(command.end(), {"--throttle-file", file("throttled-links")});
    }
    command.insert(command.end(),
                   {"--describe", file("job.json"), "--for", fmt::format("{:.1f}", injection.length), "--json"});
    return command;
  }

  // The truth, read only after the job has ended.
  Truth collect(Planned& planned) const {
    Truth truth{.culprit = planned.injection.culprit};
    if (!planned.process) {
      truth.remark = "was never started: the job ended too early";
      return truth;
    }
    planned.process->wait();
    const auto result = nlohmann::json::parse(readFile(planned.output), nullptr, false);
    if (!result.is_object()) {
      truth.remark = tail(readFile(planned.output + ".err"), 3);
      return truth;
    }
    truth.started = result.at("started").value("monotonic", 0.0);
    truth.ended = result.at("ended").value("monotonic", 0.0);
    truth.effective = result.value("effective", false);
    truth.remark = result.value("explanation", "");
    return truth;
  }

  const SessionInput& input_;
  std::optional<double> began_;
  double lastProgress_ = 0;
  size_t shown_ = 0;
  std::vector<Planned> planned_;
};

}  // namespace

std::string settingsText() {
  std::string text;
  for (const auto& [name, value] : jobSettings) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

Run runSession(const SessionInput& input) {
  return Session(input).run();
}

}  // namespace falcon::demo
