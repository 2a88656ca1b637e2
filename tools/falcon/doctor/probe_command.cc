// `falcon probe`: a small job again and again, compared with its own history.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/owned.h"
#include "doctor/command.h"
#include "doctor/own_ranks.h"
#include "doctor/probe_history.h"
#include "doctor/probe_job.h"
#include "number_rules.h"
#include "print.h"

namespace falcon::tools {
namespace {

using doctor::ProbeRecord;

struct ProbeOptions {
  std::string history;
  double every = 60;
  int count = 1;
  int ranks = 2;
  int nodes = 0;
  int iterations = 30;
  std::string handBack;
};

std::vector<ProbeRecord> readHistory(const std::string& path) {
  std::vector<ProbeRecord> records;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    auto record = doctor::parseLine(line);
    if (record)
      records.push_back(std::move(*record));
    else
      print(stderr, "falcon probe: {} line {} is left out: {}\n", path, number, record.error().message());
  }
  return records;
}

// One write of a whole line: probes that share a file do not mix theirs.
void append(const std::string& path, const ProbeRecord& record) {
  const std::string line = toLine(record);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error(fmt::format("--history {}: cannot be written", path));
}

/// This process was asked to end while a run was under way.
struct Interrupted {
  int signal;
};

ProbeRecord runOnce(const ProbeOptions& options) {
  const auto outcome =
      doctor::runOwnRanks(options.ranks, options.nodes, {"probe", "--iterations", std::to_string(options.iterations)});
  if (outcome.signal != 0) throw Interrupted{outcome.signal};
  std::istringstream numbers(outcome.text);
  doctor::ProbeTimes times;
  if (outcome.code != 0 || !(numbers >> times.iteration >> times.compute >> times.allReduce))
    throw std::runtime_error(fmt::format("the small job failed with code {}", outcome.code));
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(now).count(),
          host,
          options.ranks,
          options.nodes,
          times.iteration,
          times.compute,
          times.allReduce,
          false};
}

int probe(const ProbeOptions& options) try {
  auto history = readHistory(options.history);
  bool slow = false;
  for (int i = 0; i < options.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.every));
    auto record = runOnce(options);
    auto verdict = compare(record, history);
    if (verdict.slow) {  // once more: what has gone by then was no lasting slowness
      const auto again = runOnce(options);
      if (again.iteration < record.iteration) record = again;
      verdict = compare(record, history);
    }
    record.slow = verdict.slow;
    slow = slow || verdict.slow;
    append(options.history, record);
    history.push_back(record);
    fmt::print("{}{}\n", verdict.slow ? "SLOW: " : "", verdict.text);
    std::fflush(stdout);
  }
  return slow ? failSlowFound : healthy;
} catch (const Interrupted& interrupted) {
  print(stderr, "falcon probe: ended by signal {}\n", interrupted.signal);
  return 128 + interrupted.signal;
}

int beProbeRank(const ProbeOptions& options) {
  int rank = 0;
  const auto times = doctor::runProbeJob(options.iterations, rank);
  if (!times) {
    print(stderr, "falcon probe: {}\n", times.error().message());
    return toolFailed;
  }
  if (rank == 0)
    doctor::handBack(options.handBack, 0,
                     fmt::format("{} {} {}\n", times->iteration, times->compute, times->allReduce));
  return healthy;
}

}  // namespace

void addProbeCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<ProbeOptions>();
  auto* command = app.add_subcommand("probe", "Runs a small job again and again and compares it with its own history");
  command->footer(
      "A run is slow where it takes 1.2 times the median of its history (5 runs at least), twice in a row.\n"
      "Exit code 0 where none was slow, 3 where one was, 1 where the job failed, 2 for wrong options.\n");
  auto* history = command->add_option("--history", options->history, "File of JSON lines; made where it is missing");
  command->add_option("--every", options->every, "Seconds between runs")
      ->check(numberFrom(0, 86'400))
      ->capture_default_str();
  command->add_option("--count", options->count, "Number of runs")
      ->check(wholeNumber())
      ->check(numberFrom(1, 1'000'000'000))
      ->capture_default_str();
  command->add_option("-n,--ranks", options->ranks, "Ranks of the small job")
      ->check(wholeNumber())
      ->check(numberFrom(1, 4096))
      ->capture_default_str();
  command->add_option("--nodes", options->nodes, "Spread them over network namespaces (needs root)")
      ->check(wholeNumber())
      ->check(numberFrom(1, 4096));
  command->add_option("--iterations", options->iterations, "Iterations of one run; a history needs always the same")
      ->check(wholeNumber())
      ->check(numberFrom(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--hand-back", options->handBack)->group("");
  command->callback([options, history, &exitCode] {
    if (!options->handBack.empty()) {
      exitCode = beProbeRank(*options);
      return;
    }
    if (history->count() == 0) throw CLI::RequiredError("--history");
    exitCode = probe(*options);
  });
}

}  // namespace falcon::tools
