#include "multi_rank/trained_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/median.h"

namespace falcon::tests {
namespace {

using nlohmann::json;

/// Objects only: the last line may be in the making.
std::vector<json> objectsIn(const std::string& file) {
  std::vector<json> all;
  for (const std::string& line : linesOf(contentOf(file)))
    if (json object = json::parse(line, nullptr, false); object.is_object()) all.push_back(std::move(object));
  return all;
}

std::vector<std::string> commandOf(const TrainedShape& shape, const TemporaryFolder& folder) {
  const auto text = [](int number) { return std::to_string(number); };
  const auto& [data, pipeline, tensor] = shape.layout;
  const auto trainer = std::filesystem::path(falconCommand({})[0]).parent_path() / "falcon-train";
  std::vector<std::string> command = falconCommand({"run",
                                                    "-n",
                                                    text(shape.layout.size()),
                                                    "--nodes",
                                                    text(shape.nodes),
                                                    "--cgroups",
                                                    "--describe",
                                                    folder.file("job"),
                                                    "--",
                                                    trainer,
                                                    "--dp",
                                                    text(data),
                                                    "--pp",
                                                    text(pipeline),
                                                    "--tp",
                                                    text(tensor),
                                                    "--micro-batches",
                                                    text(shape.microBatches),
                                                    "--duration",
                                                    text(shape.seconds),
                                                    "--until",
                                                    folder.file("enough"),
                                                    "--log",
                                                    folder.file("log-%r"),
                                                    "--quiet"});
  command.insert(command.end(), shape.model.begin(), shape.model.end());
  return command;
}

std::map<std::string, std::string> with(std::map<std::string, std::string> environment, const std::string& name,
                                        const std::string& events) {
  environment["NCCL_FALCON"] = "1";
  environment["NCCL_FALCON_JOB"] = name;
  environment["NCCL_FALCON_EVENTS"] = events;
  return environment;
}

}  // namespace

std::vector<json> eventsIn(const std::string& file) {
  return objectsIn(file);
}

std::string textOf(const std::vector<json>& events) {
  std::string text;
  for (const json& event : events)
    text += fmt::format("{:6.1f} s  {}: {}\n", event.at("time_s").get<double>() - events[0].at("time_s").get<double>(),
                        event.at("kind").get<std::string>(), event.at("text").get<std::string>());
  return text;
}

json firstOf(const std::string& kind, const std::vector<json>& events) {
  for (const json& event : events)
    if (event.at("kind") == kind) return event;
  return {};
}

TrainedJob::TrainedJob(const TrainedShape& shape, const std::string& name,
                       std::map<std::string, std::string> environment, const std::string& events)
    : ranks_(shape.layout.size()),
      events_(events.empty() ? folder_.file("events") : events),
      name_(fmt::format("test-{}-{}", getpid(), name)),
      run_(commandOf(shape, folder_), with(std::move(environment), name_, events_)) {}

std::vector<TrainedIteration> TrainedJob::iterations(double from, double to, Rank rank) const {
  std::vector<TrainedIteration> all;
  for (const json& line : objectsIn(folder_.file("log-" + std::to_string(rank))))
    if (line.at("start") >= from && line.at("end") <= to)
      all.push_back({line.at("start"), line.at("end"), line.at("microBatches"), line.at("processor"),
                     line.value("health", ""), line.value("changed", 0)});
  return all;
}

double TrainedJob::iterationSeconds(double from, double to) const {
  std::vector<double> durations;
  for (const TrainedIteration& each : iterations(from, to)) durations.push_back(each.end - each.start);
  return median(std::move(durations));
}

std::vector<double> TrainedJob::processorSeconds(double from, double to) const {
  std::vector<double> all;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    std::vector<double> each;
    for (const TrainedIteration& iteration : iterations(from, to, rank))
      if (iteration.microBatches > 0) each.push_back(iteration.processor / iteration.microBatches);
    all.push_back(median(std::move(each)));
  }
  return all;
}

std::vector<int> TrainedJob::split(double time) const {
  std::vector<int> split;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto until = iterations(0, time, rank);
    split.push_back(until.empty() ? -1 : until.back().microBatches);
  }
  return split;
}

bool TrainedJob::eventually(const std::function<bool()>& condition) {
  return tests::eventually(run_, condition);
}

std::string TrainedJob::story() const {
  std::string times;
  for (const TrainedIteration& each : iterations()) times += fmt::format(" {:.0f}", (each.end - each.start) * 1e3);
  return textOf(events()) + "iterations, ms:" + times + "\n" + run_.errors();
}

void TrainedJob::stop() const {
  std::ofstream(folder_.file("enough")).close();
}

std::vector<std::string> TrainedJob::injectCommand(const Culprit& culprit, double factor, int seconds) const {
  const auto text = [](auto number) { return fmt::format("{}", number); };
  std::vector<std::string> words{"inject", "slow-rank", "--rank", text(culprit.rank), "--factor", text(factor)};
  if (culprit.kind == CulpritKind::link)
    words = {"inject", "slow-link",           "--from",     text(culprit.link.from),
             "--to",   text(culprit.link.to), "--slowdown", text(factor)};
  if (culprit.bothWays) words.push_back("--both-ways");
  words.insert(words.end(), {"--describe", folder_.file("job"), "--for", text(seconds), "--json"});
  return falconCommand(words);
}

std::optional<std::string> whyNoTrainedJob() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "a sanitizer slows all ranks, and what it slows most is not what is throttled";
#endif
  if (auto reason = whyNoNodes()) return reason;
  return whyNoCgroups();
}

}  // namespace falcon::tests
