// A real training job under Falcon, started and seen through the public commands only.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/event.h"
#include "multi_rank/run_harness.h"
#include "topology/layout.h"

namespace falcon::tests {

/// What is trained, and where.
struct TrainedShape {
  topology::Layout layout;
  int nodes = 1;
  int microBatches = 8;            ///< of one iteration, over all replicas
  int seconds = 120;               ///< how long it trains at most
  std::vector<std::string> model;  ///< falcon-train's options for the size of the model
};

/// One iteration by the trainer's own log. Times in seconds of CLOCK_MONOTONIC, as in events.
struct TrainedIteration {
  double start = 0, end = 0;
  int microBatches = 0;  ///< of this rank's replica
  double processor = 0;  ///< seconds that the rank used
  std::string health{};  ///< the job's, as the trainer was told where the iteration began
  int changed = 0;       ///< NCCL_FALCON_CHANGED_... then
};

/// The events in a file so far, and as text for people.
std::vector<nlohmann::json> eventsIn(const std::string& file);
std::string textOf(const std::vector<nlohmann::json>& events);
/// The first event of the kind; null where there is none.
nlohmann::json firstOf(const std::string& kind, const std::vector<nlohmann::json>& events);

/// `falcon run` of falcon-train with NCCL_FALCON=1, every rank in a cgroup of its own, groups of ranks on nodes.
/// It is killed with the object.
class TrainedJob {
 public:
  /// @param name         unique beside this process's other jobs
  /// @param environment  further variables of the job
  /// @param events       where the events go; empty: a file that goes with the object
  TrainedJob(const TrainedShape& shape, const std::string& name, std::map<std::string, std::string> environment,
             const std::string& events = "");

  static constexpr double always = std::numeric_limits<double>::infinity();

  const std::string& name() const { return name_; }
  tools::JobDescription description() const { return waitForDescription(folder_.file("job")); }
  /// Those in the rank's log that lie between two times.
  std::vector<TrainedIteration> iterations(double from = 0, double to = always, Rank rank = 0) const;
  /// Median seconds of an iteration between two times; NaN where there is none.
  double iterationSeconds(double from, double to) const;
  /// Processor seconds that a micro-batch took each rank, the median of its iterations between two times; NaN where
  /// there is none.
  std::vector<double> processorSeconds(double from, double to) const;
  /// Micro-batches of every rank in its last iteration that ended by then; -1: there was none.
  std::vector<int> split(double time) const;
  /// All that Falcon has said so far.
  std::vector<nlohmann::json> events() const { return eventsIn(events_); }
  /// The first event of the kind; null until there is one.
  nlohmann::json find(const std::string& kind) const { return firstOf(kind, events()); }
  /// Events as text, iteration times, and what the job wrote on stderr.
  std::string story() const;

  bool ended() { return !run_.running(); }
  /// Asks again and again until it is so; false where the job ends before.
  bool eventually(const std::function<bool()>& condition);
  /// It ends in order after the iteration in progress.
  void stop() const;
  /// Waits for its end; `falcon run`'s exit code.
  int wait() { return run_.wait(); }

  /// `falcon inject` into this job: iterations shall take `factor` times as long, for `seconds` at most.
  std::vector<std::string> injectCommand(const Culprit& culprit, double factor, int seconds) const;

 private:
  TemporaryFolder folder_;
  const int ranks_;
  const std::string events_;
  const std::string name_;
  Started run_;
};

/// Why no such job can run here, or would show nothing; nothing where it can.
std::optional<std::string> whyNoTrainedJob();

}  // namespace falcon::tests
