#include "training_job.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace falcon::tests {
namespace {

using namespace std::chrono_literals;

std::string newName() {
  static int number = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

std::vector<std::string> runCommand(const TemporaryFolder& folder, int seconds) {
  // Small iterations, so that a few dozen of them take some seconds also where cores are shared.
  return falconCommand({"run",
                        "-n",
                        std::to_string(TrainingJob::ranks),
                        "--cgroups",
                        "--describe",
                        folder.file("job.json"),
                        "--",
                        FALCON_TRAIN_BINARY,
                        "--quiet",
                        "--dp",
                        std::to_string(TrainingJob::ranks),
                        "--micro-batches",
                        "8",
                        "--iterations",
                        "1000000",
                        "--duration",
                        std::to_string(seconds),
                        "--until",
                        folder.file("enough"),
                        "--log",
                        folder.file("log")});
}

}  // namespace

TrainingJob::TrainingJob(int seconds)
    : name_(newName()),
      run_(runCommand(folder_, seconds), {{"NCCL_FALCON", "1"},
                                          {"NCCL_FALCON_JOB", name_},
                                          {"NCCL_FALCON_TRAP_BUDGET", "100"},
                                          {"NCCL_FALCON_EVENTS", folder_.file("events.jsonl")}}) {
  waitForDescription(description());
}

TrainingJob::~TrainingJob() {
  if (run_.running()) {
    run_.signal(SIGTERM);
    EXPECT_TRUE(eventually([&] { return !run_.running(); })) << "falcon run does not end by SIGTERM";
  }
  std::filesystem::remove_all("/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/" + name_);
}

void TrainingJob::stop() const {
  std::ofstream(folder_.file("enough")).close();
}

std::vector<nlohmann::json> TrainingJob::events() const {
  std::vector<nlohmann::json> all;
  for (const std::string& line : linesOf(contentOf(folder_.file("events.jsonl")))) {
    auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_object()) all.push_back(std::move(event));  // the last line may be in the making
  }
  return all;
}

std::optional<nlohmann::json> TrainingJob::waitForEvent(const std::string& kind, int seconds, size_t from) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  do {
    const auto all = events();
    for (size_t i = from; i < all.size(); ++i)
      if (all[i].at("kind") == kind) return all[i];
    std::this_thread::sleep_for(50ms);
  } while (std::chrono::steady_clock::now() < deadline && running());
  return std::nullopt;
}

TrainingJob::Shown TrainingJob::status() const {
  Started command(falconCommand({"status", name_, "--json"}));
  Shown shown{.code = command.wait(), .job = {}};
  const auto jobs = nlohmann::json::parse(command.output(), nullptr, false);
  if (jobs.is_array() && jobs.size() == 1) shown.job = jobs[0];
  return shown;
}

std::uint64_t TrainingJob::iterations() const {
  return linesOf(contentOf(folder_.file("log"))).size();
}

std::vector<std::string> injectCommand(const TrainingJob& job, const std::vector<std::string>& words) {
  std::vector<std::string> all{"inject"};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--describe", job.description(), "--json"});
  return falconCommand(all);
}

}  // namespace falcon::tests
