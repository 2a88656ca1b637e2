// The micro-batch plans of this process: proposed, decided, and looked up at each iteration's start.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "control/job.h"

namespace falcon::control {

/// Two-phase like ring proposals. Thread-safe: the monitor proposes and decides, the training thread looks up.
class PlanBook {
 public:
  void setLayout(const Layout& layout);
  std::optional<Layout> layout() const;

  /// False when iteration `from` has begun here, another proposal is undecided, or the split does not fit the layout.
  bool propose(std::uint64_t agreement, std::uint64_t from, const std::vector<int>& microBatches);
  void decide(std::uint64_t agreement, bool commit);
  /// No decision will ever come (the controller is gone): waiting and later lookups fail.
  void fail(const Error& error);

  /// The plan for `iteration`; waits while a proposal for it is undecided. Errors: no layout; failed.
  Result<IterationPlan> begin(std::uint64_t iteration);
  /// The next iteration that has not begun.
  std::uint64_t nextIteration() const;
  /// Micro-batches of this rank in the newest plan; 0 without a layout.
  int currentMicroBatches() const;

 private:
  struct Split {
    std::uint64_t agreement = 0;
    std::uint64_t from = 0;
    std::vector<int> microBatches;
  };
  IterationPlan planOf(const Split& split) const;

  mutable std::mutex mutex_;
  std::condition_variable decided_;
  std::optional<Layout> layout_;
  std::optional<Split> proposal_;
  std::optional<Split> inForce_;
  std::optional<Split> next_;  ///< committed, its iteration not reached yet
  std::optional<Error> failure_;
  std::uint64_t nextIteration_ = 0;
  std::uint64_t version_ = 0;
};

}  // namespace falcon::control
