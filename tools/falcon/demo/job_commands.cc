#include "demo/job_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace falcon::demo {
namespace {

// What a user would set as well to have it work around what it finds, as often as the demo's short run needs.
constexpr std::pair<const char*, const char*> jobSettings[] = {{"NCCL_FALCON_MITIGATE", "auto"},
                                                               {"NCCL_FALCON_TRAP_BUDGET", "100"}};

std::string file(const JobSurroundings& job, const std::string& name) {
  return job.folder + "/" + name;
}

}  // namespace

std::vector<std::string> jobCommand(const JobSurroundings& job) {
  const JobShape& shape = job.shape;
  std::vector<std::string> command = {job.programs + "/falcon",    "run",        "-n",
                                      std::to_string(shape.ranks), "--describe", file(job, "job.json")};
  if (job.namespaces) command.insert(command.end(), {"--nodes", std::to_string(shape.nodes)});
  if (job.cgroups) command.push_back("--cgroups");
  command.push_back("--");
  if (!job.startFile.empty())
    command.insert(command.end(),
                   {"/bin/sh", "-c", "while [ ! -e \"$0\" ]; do sleep 0.05; done; exec \"$@\"", job.startFile});
  command.insert(command.end(),
                 {job.programs + "/falcon-train", "--dp", std::to_string(shape.dataParallel), "--pp",
                  std::to_string(shape.pipelineParallel), "--micro-batches", std::to_string(shape.microBatches),
                  "--micro-batch-size", std::to_string(shape.sequences), "--iterations", "1000000", "--duration",
                  fmt::format("{:.0f}", shape.seconds), "--log", file(job, "iterations.jsonl"), "--quiet"});
  if (!shape.overlap) command.push_back("--no-overlap");
  return command;
}

std::map<std::string, std::string> jobEnvironment(const JobSurroundings& job) {
  std::map<std::string, std::string> environment = {{"NCCL_FALCON", job.withFalcon ? "1" : "0"},
                                                    {"NCCL_FALCON_EVENTS", file(job, "events.jsonl")},
                                                    {"NCCL_FALCON_JOB", fmt::format("demo-{}", getpid())}};
  for (const auto& [name, value] : jobSettings) environment[name] = value;
  if (!job.mitigate) environment["NCCL_FALCON_MITIGATE"] = "off";
  if (!job.namespaces) environment["NCCL_FALCON_INJECT_LINK_FILE"] = file(job, "throttled-links");
  if (!job.namespaces) environment["NCCL_SHM_DISABLE"] = "1";
  return environment;
}

std::vector<std::string> injectCommand(const JobSurroundings& job, const Injection& injection) {
  const Culprit& culprit = injection.culprit;
  std::vector<std::string> command = {job.programs + "/falcon", "inject"};
  if (culprit.kind == CulpritKind::rank) {
    command.insert(command.end(), {"slow-rank", "--rank", std::to_string(culprit.rank), "--factor",
                                   fmt::format("{:.2f}", injection.factor)});
  } else {
    command.insert(command.end(),
                   {"slow-link", "--from", std::to_string(culprit.link.from), "--to", std::to_string(culprit.link.to),
                    "--slowdown", fmt::format("{:.2f}", injection.factor)});
    if (culprit.bothWays) command.push_back("--both-ways");
    if (!job.namespaces) command.insert(command.end(), {"--throttle-file", file(job, "throttled-links")});
  }
  command.insert(command.end(), {"--describe", file(job, "job.json"), "--json"});
  if (injection.length > 0) command.insert(command.end(), {"--for", fmt::format("{:.1f}", injection.length)});
  return command;
}

std::string settingsText() {
  std::string text;
  for (const auto& [name, value] : jobSettings) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

}  // namespace falcon::demo
