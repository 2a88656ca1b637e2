// One rank's training loop.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "train/communicators.h"
#include "train/iteration_log.h"
#include "train/markov_source.h"
#include "train/options.h"
#include "train/part.h"

namespace falcon::train {

/// Collective: every rank of the job makes one, with the same options. Throws std::runtime_error on any failure.
class Trainer final : private RoleTaker {
 public:
  explicit Trainer(const Options& options);
  /// Until the iterations or the duration are used up, or the file is there, or Falcon wants a restart; all ranks stop
  /// after the same iteration. Returns the code to exit with.
  int run();

 private:
  RankParts layoutOfRole(int role) const;
  std::vector<NamedState> prepare(int role) override;
  void commit(int role) override;
  void abandon() override;

  struct Outcome {
    double loss = 0;
    int microBatches = 0;
    bool stop = false;
  };
  /// The iteration to begin with: after the newest checkpoint, else 0.
  std::uint64_t resume();
  /// What follows an iteration; the code to exit with where the job is to restart.
  std::optional<int> keep(std::uint64_t iteration, bool last);
  Outcome iterate(std::uint64_t iteration);
  /// As rank 0 knows it.
  bool isTimeToStop() const;
  /// Adds up what the ranks know: the loss, whether every micro-batch was computed once, whether to stop.
  Outcome agree(std::uint64_t iteration, double lossSum, int microBatches, bool isTimeToStop);
  void describe() const;
  void report(const IterationRecord& record);

  Options options_;
  double stopTime_ = std::numeric_limits<double>::infinity();  // CLOCK_MONOTONIC seconds
  IterationLog log_;
  Communicators communicators_;
  MarkovSource source_;
  std::unique_ptr<Part> part_;
  std::unique_ptr<Part> next_;  ///< of the role that the rank is about to take
};

}  // namespace falcon::train
