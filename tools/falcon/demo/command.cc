#include "demo/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

#include "demo/evaluation.h"
#include "demo/interruption.h"
#include "demo/restart_demo.h"
#include "demo/schedule.h"
#include "demo/session.h"
#include "demo/surroundings.h"
#include "demo/swap_demo.h"
#include "json_text.h"
#include "number_rules.h"
#include "report/page.h"
#include "work_folder.h"

namespace falcon::tools {
namespace {

namespace fs = std::filesystem;
using namespace falcon::demo;

struct DemoOptions {
  std::uint64_t seed = 1;
  bool healthy = false;
  bool json = false;
  double seconds = JobShape().seconds;
  std::string report = "falcon-report.html";
  bool keep = false;
  bool noNamespaces = false;
  bool noCgroups = false;
  bool restart = false;
  bool swap = false;
};

report_page::Series seriesOf(const Run& run, const std::string& name, const std::string& color) {
  report_page::Series series{name, color, {}};
  if (run.iterations.empty()) return series;
  const double begin = run.iterations.front().start;
  for (const Iteration& iteration : run.iterations)
    series.points.push_back({iteration.end - begin, (iteration.end - iteration.start) * 1e3});
  return series;
}

void writeReport(const std::string& path, const DemoOptions& options, const Run& with, const Run& without,
                 const Evaluation& evaluation) {
  report_page::Page page;
  page.title = "NCCL Falcon: the demo job";
  page.subtitle = options.healthy
                      ? "Nothing was injected; nothing may be reported."
                      : fmt::format("Seed {}: the same fail-slows injected into two runs of one job.", options.seed);
  if (!without.iterations.empty()) page.series.push_back(seriesOf(without, "without Falcon", "#95a5a6"));
  page.series.push_back(seriesOf(with, "with Falcon", "#2471a3"));
  const double begin = with.iterations.empty() ? 0 : with.iterations.front().start;
  for (const Said& said : with.said)
    page.marks.push_back({std::max(0.0, said.time - begin), said.kind, said.text, said.severity});
  for (const Truth& truth : with.truths)
    page.spans.push_back({truth.started - begin, truth.ended - begin, nameOf(truth.culprit)});
  if (!evaluation.rows.empty()) {
    page.tableHead = tableHead();
    page.tableRows = tableRows(evaluation);
  }
  if (evaluation.throughputWithout > 0)
    page.notes.push_back(fmt::format("Throughput: {:.3f} iterations/s with Falcon, {:.3f} without.",
                                     evaluation.throughputWith, evaluation.throughputWithout));
  if (!evaluation.right) page.notes.push_back(conclusion(evaluation));
  if (!evaluation.rows.empty())
    for (const std::string& line : legend()) page.notes.push_back(line);
  std::ofstream file(path);
  file << report_page::renderHtml(page);
  if (!file.flush()) throw std::runtime_error(path + " cannot be written; choose another place with --report");
}

// Minutes of work must not end with a chart that has no place. Leaves a file alone that is there.
bool canBeWritten(const std::string& path) {
  const bool present = fs::exists(path);
  const bool opened = std::ofstream(path, std::ios::app).is_open();
  std::error_code ignored;
  if (opened && !present) fs::remove(path, ignored);
  return opened;
}

int runDemo(const DemoOptions& options) {
  if (options.restart) return runRestartDemo({options.seed, options.json, options.keep});
  if (options.swap) return runSwapDemo({options.seed, options.json, options.keep});
  if (!canBeWritten(options.report)) {
    fmt::print(stderr, "falcon demo: {} cannot be written; choose another place with --report\n", options.report);
    return badUsage;
  }
  const std::string programs = fs::read_symlink("/proc/self/exe").parent_path();
  const tools::WorkFolder folder("demo", options.keep);
  JobShape shape;
  shape.seconds = options.seconds;
  SessionInput input;
  input.shape = shape;
  input.programs = programs;
  input.terminal = isatty(STDERR_FILENO) == 1;
  input.say = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  input.namespaces = !options.noNamespaces && mayUseNamespaces(programs, folder.sub("trial"));
  input.cgroups = !options.noCgroups && mayUseCgroups(programs, folder.sub("trial"));
  if (!input.namespaces)
    input.say("network namespaces are not permitted here: links are throttled inside the socket transport instead");
  if (!input.cgroups)
    input.say("cpu cgroups are not permitted here: ranks are slowed by stopping them in turns instead");
  if (!options.healthy) input.injections = drawSchedule(options.seed, shape);

  Run without;
  if (!options.healthy) {
    input.say(fmt::format("1. the job without Falcon, {:.0f} s: {} ranks on {} nodes, seed {}", shape.seconds,
                          shape.ranks, shape.nodes, options.seed));
    input.withFalcon = false;
    input.folder = folder.sub("without");
    without = runSession(input);
  }
  input.say(fmt::format("{}the job with Falcon, {:.0f} s{}", options.healthy ? "" : "2. ", shape.seconds,
                        options.healthy ? ", nothing injected" : ", the same injections; it is told nothing of them"));
  input.say(fmt::format("   with {}", settingsText()));
  input.withFalcon = true;
  input.folder = folder.sub("with");
  const Run with = runSession(input);

  const Evaluation evaluation = evaluate(with, without);
  for (const Truth& truth : with.truths)
    if (!truth.effective)
      input.say(fmt::format("the injection of {} had no effect: {}", nameOf(truth.culprit), truth.remark));
  if (options.json) {
    nlohmann::json result = toJson(evaluation);
    result["seed"] = options.seed;
    result["healthy"] = options.healthy;
    fmt::print("{}\n", tools::jsonText(result, 2));
  } else {
    fmt::print("\n{}", toText(evaluation));
  }
  std::fflush(stdout);  // what was found is not lost with the chart
  writeReport(options.report, options, with, without, evaluation);
  input.say(fmt::format("{}; the chart is in {}", conclusion(evaluation), options.report));
  if (options.keep) input.say("logs: " + folder.path());
  return evaluation.right ? healthy : toolFailed;
}

int runInterruptibly(const DemoOptions& options) try {
  noteInterruptions();
  return runDemo(options);
} catch (const Interrupted& interrupted) {
  fmt::print(stderr, "falcon demo: ended by signal {}; the job was ended\n", interrupted.signal);
  return 128 + interrupted.signal;
}

}  // namespace

void addDemoCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* demo = app.add_subcommand("demo", "Train a small GPT twice, slow a rank and a link, and see who finds out");
  demo->add_option("--seed", options->seed, "Draws which rank, which link, how strongly and when")
      ->check(wholeNumber())
      ->capture_default_str();
  demo->add_flag("--healthy", options->healthy, "Inject nothing; nothing may be reported");
  demo->add_flag("--json", options->json, "Print the table as JSON on stdout");
  demo->add_option("--seconds", options->seconds,
                   "How long the job trains, each time: 60 to 3600; below 140 a relief may come too late to be seen")
      ->check(numberFrom(60, 3600))
      ->capture_default_str();
  demo->add_option("--report", options->report, "Where the chart goes")->capture_default_str();
  demo->add_flag("--keep-logs", options->keep, "Keep the runs' logs and say where they are");
  demo->add_flag("--no-namespaces", options->noNamespaces, "Do as where network namespaces are not permitted");
  demo->add_flag("--no-cgroups", options->noCgroups, "Do as where cpu cgroups are not permitted");
  demo->add_flag("--restart", options->restart,
                 "Instead: a rank so slow that nothing but a restart with a spare in its place helps; needs cgroups")
      ->excludes("--healthy")
      ->excludes("--seconds")
      ->excludes("--report")
      ->excludes("--no-namespaces")
      ->excludes("--no-cgroups");
  demo->add_flag(
          "--swap", options->swap,
          "Instead: a slow link that no ring avoids, so that ranks exchange their roles; needs network namespaces")
      ->excludes("--restart")
      ->excludes("--healthy")
      ->excludes("--seconds")
      ->excludes("--report")
      ->excludes("--no-namespaces")
      ->excludes("--no-cgroups");
  demo->callback([options, &exitCode] { exitCode = runInterruptibly(*options); });
}

}  // namespace falcon::tools
