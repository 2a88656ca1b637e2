#include "control/plan_book.h"

#include <numeric>

#include "base/layout_rules.h"

namespace falcon::control {

IterationPlan equalSplit(const RegisteredPart& part) {
  const auto [count, first] =
      equalShare(part.microBatches, part.dataParallelSize, part.dataParallelIndex, part.limits.multiple);
  IterationPlan plan;
  plan.microBatches = count;
  plan.firstMicroBatch = first;
  plan.gradientWeight = static_cast<double>(plan.microBatches) / part.microBatches;
  return plan;
}

bool PlanBook::setPart(const PlannedRank& rank, const RegisteredPart& part) {
  const std::lock_guard lock(mutex_);
  parts_[rank] = part;
  return onlyPart() != nullptr;
}

void PlanBook::forget(const PlannedRank& rank) {
  const std::lock_guard lock(mutex_);
  parts_.erase(rank);
}

const RegisteredPart* PlanBook::onlyPart() const {
  const RegisteredPart* only = nullptr;
  for (const auto& [rank, part] : parts_) {
    if (only && *only != part) return nullptr;
    only = &part;
  }
  return only;
}

bool PlanBook::propose(std::uint64_t agreement, std::uint64_t from, const std::vector<int>& microBatches) {
  const std::lock_guard lock(mutex_);
  const RegisteredPart* part = onlyPart();
  if (!part || proposal_ || next_ || from < nextIteration_) return false;
  if (static_cast<int>(microBatches.size()) != part->dataParallelSize) return false;
  for (const int each : microBatches)
    if (each < 1 || each % part->limits.multiple != 0) return false;
  if (std::accumulate(microBatches.begin(), microBatches.end(), 0) != part->microBatches) return false;
  proposal_ = Split{agreement, from, microBatches};
  return true;
}

void PlanBook::decide(std::uint64_t agreement, bool commit) {
  {
    const std::lock_guard lock(mutex_);
    if (!proposal_ || proposal_->agreement != agreement) return;
    if (commit) next_ = std::move(proposal_);
    proposal_.reset();
  }
  decided_.notify_all();
}

IterationPlan PlanBook::planOf(const Split& split, const RegisteredPart& part) {
  if (static_cast<int>(split.microBatches.size()) != part.dataParallelSize) return equalSplit(part);
  IterationPlan plan;
  const auto mine = split.microBatches.begin() + part.dataParallelIndex;
  plan.microBatches = *mine;
  plan.firstMicroBatch = std::accumulate(split.microBatches.begin(), mine, 0);
  plan.gradientWeight = static_cast<double>(*mine) / part.microBatches;
  return plan;
}

Result<IterationPlan> PlanBook::begin(const PlannedRank& rank, std::uint64_t iteration) {
  std::unique_lock lock(mutex_);
  const auto known = parts_.find(rank);
  if (known == parts_.end())
    return Error::invalidUsage("ncclFalconIterationBegin: call ncclFalconRegisterLayout first");
  const RegisteredPart part = known->second;
  decided_.wait(lock, [&] { return !proposal_ || iteration < proposal_->from; });
  if (iteration >= nextIteration_) nextIteration_ = iteration + 1;
  if (next_ && iteration >= next_->from) {
    inForce_ = std::move(next_);
    next_.reset();
    version_ = inForce_->agreement;
  }
  IterationPlan plan = inForce_ ? planOf(*inForce_, part) : equalSplit(part);
  plan.version = version_;
  return plan;
}

std::uint64_t PlanBook::nextIteration() const {
  const std::lock_guard lock(mutex_);
  return nextIteration_;
}

int PlanBook::currentMicroBatches() const {
  const std::lock_guard lock(mutex_);
  const RegisteredPart* part = onlyPart();
  if (!part) return 0;
  return (inForce_ ? planOf(*inForce_, *part) : equalSplit(*part)).microBatches;
}

}  // namespace falcon::control
