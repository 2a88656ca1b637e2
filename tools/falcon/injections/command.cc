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
#include "injections/sweep.h"
#include "json_text.h"
#include "number_rules.h"
#include "work_folder.h"

namespace falcon::tools {
namespace {

using namespace falcon::injections;

struct InjectionsOptions {
  std::optional<int> count;
  std::uint64_t seed = 1;
  bool json = false;
  std::string resume;
  std::vector<std::string> cases;  ///< empty: random injections
  bool sweep = false, mitigate = false;
  std::vector<std::string> cells{"all"};
  bool keep = false;
  bool verbose = false;
};

constexpr int usualCount = 200, usualCountOfACell = 20;

demo::JobSurroundings surroundingsIn(const tools::WorkFolder& folder, const InjectionsOptions& options,
                                     const std::string& name = "job") {
  if (options.keep) fmt::print(stderr, "logs: {}\n", folder.path());
  demo::JobSurroundings surroundings;
  surroundings.mitigate = options.mitigate;
  surroundings.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  surroundings.namespaces = demo::mayUseNamespaces(surroundings.programs, folder.path());
  surroundings.cgroups = demo::mayUseCgroups(surroundings.programs, folder.path());
  surroundings.folder = folder.sub(name);
  surroundings.shape.seconds = 30 * 86'400;  // it ends with this program
  return surroundings;
}

std::function<void(const demo::Said&)> hearing(const InjectionsOptions& options) {
  return [verbose = options.verbose](const demo::Said& said) {
    if (verbose) fmt::print(stderr, "      {:.1f} s {}: {}\n", said.time, said.kind, said.text);
  };
}

// Each has a job of its own: it may not survive the case.
std::vector<Row> runCases(const InjectionsOptions& options) {
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
std::vector<Row> inject(const InjectionsOptions& options, ResultsFile* results) {
  std::vector<Row> rows = results ? results->rows() : std::vector<Row>();
  const int count = options.count.value_or(usualCount);
  if (rows.size() > static_cast<std::size_t>(count)) rows.resize(static_cast<std::size_t>(count));
  fmt::print(stderr, "{}\n", tableHead());
  for (std::size_t i = 0; i < rows.size(); ++i) fmt::print(stderr, "{}\n", tableLine(static_cast<int>(i) + 1, rows[i]));
  if (static_cast<int>(rows.size()) == count) return rows;

  const tools::WorkFolder folder("injections", options.keep);
  SlowJob job(surroundingsIn(folder, options), hearing(options));
  job.waitForBaseline(forBaseline);
  for (int number = static_cast<int>(rows.size()); number < count; ++number) {
    rows.push_back(scoreOf(injectOnce(job, draw(options.seed, number, job.surroundings().shape))));
    if (results) results->add(rows.back());
    fmt::print(stderr, "{}\n", tableLine(number + 1, rows.back()));
  }
  return rows;
}

int runSweep(const InjectionsOptions& options) {
  const std::vector<Cell> cells = cellsNamed(options.cells);
  const tools::WorkFolder folder("injections", options.keep);
  const auto surroundings = [&](const std::string& name) { return surroundingsIn(folder, options, name); };
  const std::vector<CellResult> results =
      sweep(cells, options.count.value_or(usualCountOfACell), surroundings, hearing(options));
  if (options.json) {
    nlohmann::ordered_json text{{"cells", nlohmann::ordered_json::array()}};
    for (const CellResult& each : results) text["cells"].push_back(toJson(each));
    fmt::print("{}\n", jsonText(text, 2));
  }
  const std::vector<std::string> shortcomings = shortcomingsOf(results);
  for (const std::string& each : shortcomings) fmt::print(stderr, "NOT GOOD: {}\n", each);
  return shortcomings.empty() ? healthy : toolFailed;
}

int run(const InjectionsOptions& options) {
  if (options.sweep) return runSweep(options);
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

int runInterruptibly(const InjectionsOptions& options) try {
  demo::noteInterruptions();
  return run(options);
} catch (const std::invalid_argument& wrong) {
  fmt::print(stderr, "falcon injections: {}\n", wrong.what());
  return badUsage;
} catch (const demo::Interrupted& interrupted) {
  fmt::print(stderr, "falcon injections: ended by signal {}; what was injected is undone{}\n", interrupted.signal,
             options.resume.empty()
                 ? std::string()
                 : fmt::format(", and what is done is kept: go on with the same --resume {}", options.resume));
  return 128 + interrupted.signal;
}

}  // namespace

void addInjectionsCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<InjectionsOptions>();
  CLI::App* command = app.add_subcommand(
      "injections", "Slow ranks and links of one job at random, one after the other, and count who is found");
  command
      ->add_option("--count", options->count,
                   fmt::format("How many injections ({}), or with --sweep how many of each cell ({})", usualCount,
                               usualCountOfACell))
      ->check(wholeNumber())
      ->check(numberFrom(1, 100'000));
  command->add_option("--seed", options->seed, "Draws which ranks and links, and how strongly")
      ->check(wholeNumber())
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the results as JSON on stdout");
  const auto resume =
      command->add_option("--resume", options->resume, "Keep the results in this file, and go on where it ends");
  const auto sweeping = command
                            ->add_flag("--sweep", options->sweep,
                                       "Instead, slow links that are all shaped alike, ranks and the host by 1.2 to 5 "
                                       "times, cell by cell")
                            ->excludes(resume);
  command->add_option("--cells", options->cells, "Of the sweep only these: a kind, or a kind and a factor (link:1.5)")
      ->needs(sweeping)
      ->delimiter(',');
  command
      ->add_flag(
          "--mitigate", options->mitigate,
          "Let the job work around what it finds, and say what share of the slowdown that gives back, beside the "
          "most that is possible")
      ->needs(sweeping);
  command
      ->add_option("--case", options->cases, "Instead, one or more of the cases where \"not certain\" is right as well")
      ->check(CLI::IsMember(badCases()))
      ->excludes(resume)
      ->excludes(sweeping);
  command->add_flag("--keep-logs", options->keep, "Keep the job's logs and say where they are");
  command->add_flag("--verbose", options->verbose, "Show what the job says meanwhile");
  command->callback([options, &exitCode] { exitCode = runInterruptibly(*options); });
}

}  // namespace falcon::tools
