#include "injections/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "demo/interruption.h"
#include "demo/surroundings.h"
#include "injections/bad_cases.h"
#include "injections/episode.h"
#include "injections/results_file.h"
#include "json_text.h"
#include "number_rules.h"
#include "work_folder.h"

namespace falcon::tools {
namespace {

using namespace falcon::injections;

struct Options {
  int count = 200;
  std::uint64_t seed = 1;
  bool json = false;
  std::string resume;
  std::vector<std::string> cases;  ///< empty: random injections
  bool keep = false;
  bool verbose = false;
};

constexpr double forBaseline = 240;

demo::JobSurroundings surroundingsIn(const tools::WorkFolder& folder, const Options& options) {
  if (options.keep) fmt::print(stderr, "logs: {}\n", folder.path());
  demo::JobSurroundings surroundings;
  surroundings.mitigate = false;
  surroundings.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  surroundings.namespaces = demo::mayUseNamespaces(surroundings.programs, folder.path());
  surroundings.cgroups = demo::mayUseCgroups(surroundings.programs, folder.path());
  surroundings.folder = folder.sub("job");
  surroundings.shape.seconds = 30 * 86'400;  // it ends with this program
  return surroundings;
}

std::function<void(const demo::Said&)> hearing(const Options& options) {
  return [verbose = options.verbose](const demo::Said& said) {
    if (verbose) fmt::print(stderr, "      {:.1f} s {}: {}\n", said.time, said.kind, said.text);
  };
}

// Each has a job of its own: it may not survive the case.
std::vector<Row> runCases(const Options& options) {
  std::vector<Row> rows;
  fmt::print(stderr, "{}\n", tableHead());
  for (const std::string& name : options.cases) {
    const tools::WorkFolder folder("injections", options.keep);
    SlowJob job(surroundingsIn(folder, options), hearing(options));
    job.waitForBaseline(forBaseline);
    rows.push_back(runBadCase(name, options.seed, job));
    fmt::print(stderr, "{}\n", tableLine(static_cast<int>(rows.size()), rows.back()));
  }
  return rows;
}

// One job for all of them: nothing carries over from one process to the next that a real job would not carry over.
std::vector<Row> inject(const Options& options, ResultsFile* results) {
  std::vector<Row> rows = results ? results->rows() : std::vector<Row>();
  if (rows.size() > static_cast<std::size_t>(options.count)) rows.resize(static_cast<std::size_t>(options.count));
  fmt::print(stderr, "{}\n", tableHead());
  for (std::size_t i = 0; i < rows.size(); ++i) fmt::print(stderr, "{}\n", tableLine(static_cast<int>(i) + 1, rows[i]));
  if (static_cast<int>(rows.size()) == options.count) return rows;

  const tools::WorkFolder folder("injections", options.keep);
  SlowJob job(surroundingsIn(folder, options), hearing(options));
  job.waitForBaseline(forBaseline);
  for (int number = static_cast<int>(rows.size()); number < options.count; ++number) {
    rows.push_back(scoreOf(injectOnce(job, draw(options.seed, number, job.surroundings().shape))));
    if (results) results->add(rows.back());
    fmt::print(stderr, "{}\n", tableLine(number + 1, rows.back()));
  }
  return rows;
}

int run(const Options& options) {
  std::optional<ResultsFile> results;
  if (!options.resume.empty()) results.emplace(options.resume, options.seed);
  const std::vector<Row> rows =
      options.cases.empty() ? inject(options, results ? &*results : nullptr) : runCases(options);
  const Summary summary = summaryOf(rows);
  fmt::print(stderr, "{} injections: {} right, {} innocent named", summary.count, summary.right, summary.innocent);
  // Who is not certain in a bad case takes as long as that takes.
  const bool timed = options.cases.empty();
  if (timed) fmt::print(stderr, "; of {} with a culprit {} named within 15 s", summary.injected, summary.within15s);
  fmt::print(stderr, "\n");
  if (options.json) {
    nlohmann::ordered_json text{{"injections", nlohmann::ordered_json::array()}, {"summary", toJson(summary)}};
    for (const Row& row : rows) text["injections"].push_back(toJson(row));
    fmt::print("{}\n", jsonText(text, 2));
  }
  const bool passed = timed ? summary.passed() : summary.right == summary.count;
  return passed ? healthy : toolFailed;
}

int runInterruptibly(const Options& options) try {
  demo::noteInterruptions();
  return run(options);
} catch (const demo::Interrupted& interrupted) {
  fmt::print(stderr, "falcon injections: ended by signal {}; what was injected is undone{}\n", interrupted.signal,
             options.resume.empty()
                 ? std::string()
                 : fmt::format(", and what is done is kept: go on with the same --resume {}", options.resume));
  return 128 + interrupted.signal;
}

}  // namespace

void addInjectionsCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "injections", "Slow ranks and links of one job at random, one after the other, and count who is found");
  command->add_option("--count", options->count, "How many injections")
      ->check(wholeNumber())
      ->check(numberFrom(1, 100'000))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Draws which ranks and links, and how strongly")
      ->check(wholeNumber())
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the results as JSON on stdout");
  const auto resume =
      command->add_option("--resume", options->resume, "Keep the results in this file, and go on where it ends");
  command
      ->add_option("--case", options->cases, "Instead, one or more of the cases where \"not certain\" is right as well")
      ->check(CLI::IsMember(badCases()))
      ->excludes(resume);
  command->add_flag("--keep-logs", options->keep, "Keep the job's logs and say where they are");
  command->add_flag("--verbose", options->verbose, "Show what the job says meanwhile");
  command->callback([options, &exitCode] { exitCode = runInterruptibly(*options); });
}

}  // namespace falcon::tools
