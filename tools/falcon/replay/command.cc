#include "replay/command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/parameters.h"
#include "json_text.h"
#include "number_rules.h"
#include "replay/detectors.h"
#include "replay/score.h"
#include "replay/table_file.h"

namespace falcon::tools {
namespace {

using nlohmann::ordered_json;
using replay::Event;
using replay::Score;

struct ReplayOptions {
  std::string file, labels, work, detector = "falcon";
  double threshold = parameters::onsetThreshold.fallback();
  bool json = false;
};

struct Outcome {
  std::size_t iterations;
  std::vector<Event> events;
  std::optional<Score> score;
};

ordered_json jsonOf(const std::optional<double>& delay) {
  return delay ? ordered_json(*delay) : ordered_json(nullptr);
}

std::string textOf(const std::optional<double>& delay) {
  return delay ? fmt::format("{} iterations", *delay) : "-";
}

void printJson(const Outcome& outcome) {
  ordered_json result{{"iterations", outcome.iterations}, {"events", ordered_json::array()}};
  for (const Event& event : outcome.events)
    result["events"].push_back({{"kind", instrument::nameOf(event.kind)},
                                {"iteration", event.iteration},
                                {"before_ms", event.beforeMilliseconds},
                                {"after_ms", event.afterMilliseconds},
                                {"confidence", event.confidence}});
  if (const auto& score = outcome.score)
    result["score"] = {{"true_positive", score->truePositive},
                       {"false_positive", score->falsePositive},
                       {"false_negative", score->falseNegative},
                       {"onset_delay_median", jsonOf(score->onsetDelayMedian)},
                       {"relief_delay_median", jsonOf(score->reliefDelayMedian)}};
  fmt::print("{}\n", jsonText(result));
}

void printTable(const Outcome& outcome) {
  fmt::print("{:>10}  {:<10}{:>14}{:>14}{:>9}{:>12}\n", "iteration", "event", "before", "after", "change",
             "confidence");
  for (const Event& event : outcome.events)
    fmt::print("{:>10}  {:<10}{:>11.1f} ms{:>11.1f} ms{:>+8.1f}%{:>12.3f}\n", event.iteration,
               instrument::nameOf(event.kind), event.beforeMilliseconds, event.afterMilliseconds,
               100 * (event.afterMilliseconds / event.beforeMilliseconds - 1), event.confidence);
  fmt::print("{} events in {} iterations\n", outcome.events.size(), outcome.iterations);
  if (const auto& score = outcome.score)
    fmt::print("{} episodes found, {} missed, {} false alarms; onset after {} (median), relief after {}\n",
               score->truePositive, score->falseNegative, score->falsePositive, textOf(score->onsetDelayMedian),
               textOf(score->reliefDelayMedian));
}

int replayFile(const ReplayOptions& options) {
  const auto times = replay::readTimesFile(options.file, options.work);
  const auto detector = replay::makeDetector(options.detector, options.threshold / 100);
  Outcome outcome{times.size(), replay::replay(*detector, times), std::nullopt};
  if (!options.labels.empty())
    outcome.score = replay::scoreOf(outcome.events, replay::readEpisodesFile(options.labels));
  options.json ? printJson(outcome) : printTable(outcome);
  return healthy;
}

}  // namespace

void addReplayCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      app.add_subcommand("replay", "Run a change-point detector over recorded iteration times, and score it");
  command
      ->add_option("file", options->file,
                   "CSV with a header; its columns iteration and elapsed_ms are read (docs/detection.md has synonyms)")
      ->required();
  command->add_option("--labels", options->labels,
                      "CSV with the columns start_iteration and end_iteration: slow from start until before end");
  command->add_option("--detector", options->detector, "falcon, bocdv, bocd or window")
      ->check(CLI::IsMember(std::vector<std::string>(replay::detectorNames.begin(), replay::detectorNames.end())))
      ->capture_default_str();
  command
      ->add_option("--threshold", options->threshold,
                   "Smallest lasting change that counts, in percent, as NCCL_FALCON_ONSET_THRESHOLD tells a job; half "
                   "of it, for 200 iterations, is minor")
      ->check(numberFrom(parameters::onsetThreshold.low(), parameters::onsetThreshold.high()))
      ->capture_default_str();
  command->add_option("--work", options->work,
                      "Column with each iteration's work (tokens, say): longer sequences are no fail-slow");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command->callback([options, &exitCode] { exitCode = replayFile(*options); });
}

}  // namespace falcon::tools
