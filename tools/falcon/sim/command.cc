#include "sim/command.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "json_text.h"
#include "number_rules.h"
#include "replay/detectors.h"
#include "sim/comparison.h"

namespace falcon::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using sim::DetectorResult;
using sim::JobCounts;

struct TracesOptions {
  int jobs = sim::singleNode.jobs + sim::fourNodes.jobs;
  std::uint64_t seed = 100;
  std::string folder;
  std::vector<std::string> detectors{replay::detectorNames.begin(), replay::detectorNames.end()};
  bool json = false;
};

ordered_json jsonOf(const JobCounts& counts) {
  return {{"jobs", counts.healthy + counts.failSlow},          {"fail_slow_jobs", counts.failSlow},
          {"healthy_with_onset", counts.healthyWithOnset},     {"healthy_with_minor", counts.healthyWithMinor},
          {"fail_slow_missed", counts.failSlowMissed},         {"accuracy", counts.accuracy()},
          {"false_positive_rate", counts.falsePositiveRate()}, {"false_negative_rate", counts.falseNegativeRate()}};
}

ordered_json jsonOf(const DetectorResult& result) {
  ordered_json episodes = ordered_json::object();
  for (int i = 0; i < sim::strengths; ++i) {
    const auto& counts = result.episodes[static_cast<std::size_t>(i)];
    episodes[sim::nameOf(static_cast<sim::Strength>(i))] = {
        {"episodes", counts.episodes}, {"found", counts.found}, {"found_within_5", counts.foundWithinFive}};
  }
  return {{"detector", result.detector},
          {"single_node", jsonOf(result.singleNode)},
          {"four_nodes", jsonOf(result.fourNodes)},
          {"episodes", episodes},
          {"false_onsets", result.falseOnsets},
          {"jobs_with_false_onset", result.jobsWithFalseOnset},
          {"jobs_with_missed_strong", result.jobsWithMissedStrong},
          {"ended", result.ended},
          {"relieved_within_20", result.relieved},
          {"onset_delay_median", result.onsetDelayMedian},
          {"relief_delay_median", result.reliefDelayMedian}};
}

void printJobTable(const char* title, const std::vector<DetectorResult>& results, JobCounts DetectorResult::*part) {
  const JobCounts& first = results.front().*part;
  fmt::print("{}: {} jobs, {} with fail-slows\n  {:<10}{:>10}{:>10}{:>10}\n", title, first.healthy + first.failSlow,
             first.failSlow, "detector", "accuracy", "FPR", "FNR");
  for (const DetectorResult& result : results)
    fmt::print("  {:<10}{:>9.2f}%{:>9.2f}%{:>9.2f}%\n", result.detector, 100 * (result.*part).accuracy(),
               100 * (result.*part).falsePositiveRate(), 100 * (result.*part).falseNegativeRate());
}

void printEpisodeTable(const std::vector<DetectorResult>& results) {
  fmt::print("Episodes found (within 5 iterations)\n  {:<28}{:>7}", "", "all");
  for (const DetectorResult& result : results) fmt::print("{:>16}", result.detector);
  fmt::print("\n");
  for (std::size_t i = 0; i < sim::strengths; ++i) {
    fmt::print("  {:<28}{:>7}", sim::nameOf(static_cast<sim::Strength>(i)), results.front().episodes[i].episodes);
    for (const DetectorResult& result : results)
      fmt::print("{:>16}", fmt::format("{} ({})", result.episodes[i].found, result.episodes[i].foundWithinFive));
    fmt::print("\n");
  }
  const auto row = [&](const char* name, auto&& cell) {
    fmt::print("  {:<35}", name);
    for (const DetectorResult& result : results) fmt::print("{:>16}", cell(result));
    fmt::print("\n");
  };
  row("false onsets", [](const DetectorResult& r) { return fmt::format("{}", r.falseOnsets); });
  row("healthy jobs with a minor slowness", [](const DetectorResult& r) {
    return fmt::format("{}", r.singleNode.healthyWithMinor + r.fourNodes.healthyWithMinor);
  });
  row("strong: onset delay, median", [](const DetectorResult& r) { return fmt::format("{}", r.onsetDelayMedian); });
  row("strong: relief delay, median", [](const DetectorResult& r) { return fmt::format("{}", r.reliefDelayMedian); });
  row("strong: relieved within 20", [](const DetectorResult& r) { return fmt::format("{}/{}", r.relieved, r.ended); });
}

void compareDetectors(const TracesOptions& options) {
  const sim::SimulatedJobs jobs(options.jobs, options.seed);
  const auto results = sim::compare(jobs, {options.detectors.begin(), options.detectors.end()});
  if (options.json) {
    ordered_json all{{"jobs", options.jobs}, {"seed", options.seed}, {"detectors", ordered_json::array()}};
    for (const DetectorResult& result : results) all["detectors"].push_back(jsonOf(result));
    fmt::print("{}\n", jsonText(all));
    return;
  }
  printJobTable("One node (the papers' table 4)", results, &DetectorResult::singleNode);
  printJobTable("Four nodes (the papers' table 5)", results, &DetectorResult::fourNodes);
  printEpisodeTable(results);
}

void writeFile(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text) || !file.flush()) throw std::runtime_error(fmt::format("{} cannot be written", path.string()));
}

void writeTraces(const TracesOptions& options) {
  fs::create_directories(options.folder);
  const sim::SimulatedJobs jobs(options.jobs, options.seed);
  for (int index = 0; index < options.jobs; ++index) {
    const auto job = jobs[index];
    std::string times = "iteration,elapsed_ms,work\n", labels = "start_iteration,end_iteration,size\n";
    for (std::size_t i = 0; i < job.milliseconds.size(); ++i)
      times += fmt::format("{},{:.3f},{:.6g}\n", i + 1, job.milliseconds[i], job.work[i]);
    for (const auto& episode : job.episodes)
      labels += fmt::format("{},{},{:.4f}\n", episode.labels.start, episode.labels.end, episode.size);
    writeFile(fs::path(options.folder) / fmt::format("job-{:05}.csv", index), times);
    writeFile(fs::path(options.folder) / fmt::format("job-{:05}-episodes.csv", index), labels);
  }
  fmt::print(stderr, "falcon sim: wrote {} jobs into {}\n", options.jobs, options.folder);
}

}  // namespace

void addSimCommand(CLI::App& app, int& exitCode) {
  CLI::App* sim = app.add_subcommand("sim", "Try things out on simulated jobs");
  sim->require_subcommand(1);
  auto options = std::make_shared<TracesOptions>();
  CLI::App* traces = sim->add_subcommand(
      "traces", "Detectors compared over simulated jobs with fail-slows at the papers' rates (their tables 4 and 5)");
  traces->add_option("--jobs", options->jobs, "How many; one-node and four-node jobs in the papers' proportion")
      ->check(wholeNumber())
      ->check(numberFrom(1, 1000000))
      ->capture_default_str();
  traces->add_option("--seed", options->seed, "The same seed makes the same jobs")
      ->check(wholeNumber())
      ->capture_default_str();
  traces->add_option("--detectors", options->detectors, "Which, such as falcon,bocdv")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(replay::detectorNames.begin(), replay::detectorNames.end())))
      ->capture_default_str();
  traces->add_option("--out", options->folder,
                     "Write the jobs into this folder, as `falcon replay --work work` reads them, and compare nothing");
  traces->add_flag("--json", options->json, "One JSON object on stdout");
  traces->callback([options, &exitCode] {
    options->folder.empty() ? compareDetectors(*options) : writeTraces(*options);
    exitCode = healthy;
  });
}

}  // namespace falcon::tools
