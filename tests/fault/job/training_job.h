// A real training job under Falcon, seen from outside.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "multi_rank/run_harness.h"

namespace falcon::tests {

/// Four replicas train in cgroups of their own with NCCL_FALCON=1 until `seconds` are over or the object goes.
class TrainingJob {
 public:
  explicit TrainingJob(int seconds);
  ~TrainingJob();

  static constexpr int ranks = 4;
  const std::string& name() const { return name_; }
  std::string description() const { return folder_.file("job.json"); }
  /// It ends in order after the iteration in progress.
  void stop() const;
  /// Waits for the end; falcon run's exit code.
  int wait() { return run_.wait(); }
  bool running() { return run_.running(); }
  std::string errors() const { return run_.errors(); }

  /// All that Falcon has said so far.
  std::vector<nlohmann::json> events() const;
  /// The first event of a kind from number `from` on; nothing if it does not come within `seconds` or the job ends.
  std::optional<nlohmann::json> waitForEvent(const std::string& kind, int seconds, size_t from = 0);

  /// `falcon status`: its exit code, and what it says of this job.
  struct Shown {
    int code = -1;
    nlohmann::json job;
  };
  Shown status() const;
  std::uint64_t iterations() const;  ///< of the trainer's log

 private:
  TemporaryFolder folder_;
  std::string name_;
  Started run_;
};

/// `falcon inject` into the job, started.
std::vector<std::string> injectCommand(const TrainingJob& job, const std::vector<std::string>& words);

}  // namespace falcon::tests
