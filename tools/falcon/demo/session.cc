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
#include "demo/job_commands.h"
#include "inject/other_load.h"
#include "inject/outcome.h"
#include "machine/description.h"

namespace falcon::demo {
namespace {

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
    ChildProcess job(jobCommand(input_), jobEnvironment(input_), file("job.out"), file("job.err"));
    const double limit = tools::monotonicNow() + input_.shape.seconds + 90;
    while (!job.exitCode()) {
      if (tools::monotonicNow() > limit)
        throw std::runtime_error("the job did not end in time\n" + tail(readFile(file("job.err")), 20));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      throwIfInterrupted();
      followLog();
      followEvents();
      lookAtOthers();
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
    if (others_) run.others = others_->uses();
    return run;
  }

 private:
  struct Planned {
    Injection injection;
    std::string output;
    std::unique_ptr<ChildProcess> process;
  };

  std::string file(const std::string& name) const { return input_.folder + "/" + name; }

  void followLog() {
    const auto iterations = parseTrainerLog(readFile(file("iterations.jsonl")));
    if (iterations.empty()) return;
    if (!began_) {
      began_ = iterations.front().start;
      for (const Injection& injection : input_.injections)
        planned_.push_back({injection, file(fmt::format("injection-{}.json", planned_.size())), nullptr});
    }
    if (!input_.terminal || tools::monotonicNow() - lastProgress_ < 1) return;
    lastProgress_ = tools::monotonicNow();
    fmt::print(stderr, "\r\x1b[K  {:5.0f} s  iteration {}  {:.0f} ms  loss {:.3f}", tools::monotonicNow() - *began_,
               iterations.size(), (iterations.back().end - iterations.back().start) * 1e3, iterations.back().loss);
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
      input_.say(eventLine(at, said[shown_].kind, said[shown_].text));
    }
  }

  void lookAtOthers() {
    if (others_) return others_->look();
    if (auto job = tools::readDescription(file("job.json"))) others_.emplace(*job);
  }

  void inject() {
    if (!began_) return;
    for (Planned& planned : planned_) {
      if (planned.process || tools::monotonicNow() < *began_ + planned.injection.start) continue;
      planned.process =
          std::make_unique<ChildProcess>(injectCommand(input_, planned.injection), std::map<std::string, std::string>{},
                                         planned.output, planned.output + ".err");
    }
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
  std::optional<tools::OtherLoad> others_;
};

}  // namespace

std::string eventLine(double seconds, const std::string& kind, const std::string& text) {
  return fmt::format("  {:5.1f} s  {:<20} {}", seconds, kind, text);
}

Run runSession(const SessionInput& input) {
  return Session(input).run();
}

}  // namespace falcon::demo
