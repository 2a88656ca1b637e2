// The micro-batch plans of this process's ranks: proposed, decided, and looked up at each iteration's start.
#pragma once

#include <compare>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "control/job.h"

namespace falcon::control {

/// A rank as the API names it: by its handle of the communicator that it registered its part with.
struct PlannedRank {
  CommunicatorId communicator = 0;
  Rank rank = 0;
  auto operator<=>(const PlannedRank&) const = default;
};

/// Two-phase like ring proposals. Thread-safe: the monitor proposes and decides, the training thread looks up.
/// Ranks that are threads of one process have a part each and get the plans that are theirs, but no re-split: what a
/// process takes cannot be told apart by rank.
class PlanBook {
 public:
  /// False: this process has ranks in different places of the layout from now on, see above.
  bool setPart(const PlannedRank& rank, const RegisteredPart& part);
  /// The rank's communicator is gone.
  void forget(const PlannedRank& rank);

  /// False when iteration `from` has begun here, another proposal is undecided, the split does not fit the layout, or
  /// this process has several ranks.
  bool propose(std::uint64_t agreement, std::uint64_t from, const std::vector<int>& microBatches);
  void decide(std::uint64_t agreement, bool commit);

  /// The plan for `iteration`; waits while a proposal for it is undecided. Error: no part is registered.
  Result<IterationPlan> begin(const PlannedRank& rank, std::uint64_t iteration);
  /// The next iteration that has not begun.
  std::uint64_t nextIteration() const;
  /// Micro-batches of this process's rank in the newest plan; 0 without a part, and with several ranks.
  int currentMicroBatches() const;

 private:
  struct Split {
    std::uint64_t agreement = 0;
    std::uint64_t from = 0;
    std::vector<int> microBatches;
  };
  static IterationPlan planOf(const Split& split, const RegisteredPart& part);
  /// The part that all ranks here share; null: there is none.
  const RegisteredPart* onlyPart() const;

  mutable std::mutex mutex_;
  std::condition_variable decided_;
  std::map<PlannedRank, RegisteredPart> parts_;
  std::optional<Split> proposal_;
  std::optional<Split> inForce_;
  std::optional<Split> next_;  ///< committed, its iteration not reached yet
  std::uint64_t nextIteration_ = 0;
  std::uint64_t version_ = 0;
};

}  // namespace falcon::control
