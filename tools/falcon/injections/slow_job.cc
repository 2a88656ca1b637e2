#include "injections/slow_job.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "demo/interruption.h"
#include "inject/outcome.h"

namespace falcon::injections {
namespace {

std::string lastLines(const std::string& text) {
  constexpr std::size_t most = 2000;
  return text.size() > most ? text.substr(text.size() - most) : text;
}

}  // namespace

SlowJob::SlowJob(demo::JobSurroundings surroundings, std::function<void(const demo::Said&)> hear)
    : surroundings_(std::move(surroundings)),
      hear_(std::move(hear)),
      process_(demo::jobCommand(surroundings_), demo::jobEnvironment(surroundings_), file("job.out"), file("job.err")),
      events_(file("events.jsonl"), true),
      iterations_(file("iterations.jsonl"), true) {}

void SlowJob::read() {
  for (const std::string& line : events_.take()) {
    for (demo::Said& each : demo::parseEvents(line)) {
      if (hear_) hear_(each);
      said_.push_back(std::move(each));
    }
  }
  for (const std::string& line : iterations_.take())
    for (const demo::Iteration& each : demo::parseTrainerLog(line)) iterationEnds_.push_back(each.end);
}

void SlowJob::look() {
  demo::throwIfInterrupted();
  const bool over = ended();
  read();
  if (over)
    throw std::runtime_error(fmt::format("the job ended with code {}\n{}", *process_.exitCode(),
                                         lastLines(demo::readFile(file("job.err")))));
}

bool SlowJob::lookUntil(const std::function<bool()>& done, double seconds) {
  const double limit = tools::monotonicNow() + seconds;
  for (;;) {
    look();
    if (done()) return true;
    if (tools::monotonicNow() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

bool SlowJob::lookUntilItEnds(double seconds) {
  for (const double limit = tools::monotonicNow() + seconds; !ended();) {
    demo::throwIfInterrupted();
    if (tools::monotonicNow() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  read();
  return true;
}

void SlowJob::waitForBaseline(double seconds) {
  const auto known = [&] {
    for (const demo::Said& each : said_)
      if (each.kind == "baseline-taken") return true;
    return false;
  };
  if (!lookUntil(known, seconds))
    throw std::runtime_error("the job did not come to know what is healthy\n" +
                             lastLines(demo::readFile(file("job.err"))));
}

}  // namespace falcon::injections
