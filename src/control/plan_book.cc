#include "control/plan_book.h"

#include <numeric>

#include "base/layout_rules.h"

namespace falcon::control {

IterationPlan equalSplit(const Layout& layout) {
  const auto [count, first] =
      equalShare(layout.microBatches, layout.dataParallelSize, layout.dataParallelIndex, layout.limits.multiple);
  IterationPlan plan;
  plan.microBatches = count;
  plan.firstMicroBatch = first;
  plan.gradientWeight = static_cast<double>(plan.microBatches) / layout.microBatches;
  return plan;
}

bool PlanBook::setLayout(const PlannedRank& rank, const Layout& layout) {
  const std::lock_guard lock(mutex_);
  layouts_[rank] = layout;
  return onlyLayout() != nullptr;
}

void PlanBook::forget(const PlannedRank& rank) {
  const std::lock_guard lock(mutex_);
  layouts_.erase(rank);
}

const Layout* PlanBook::onlyLayout() const {
  const Layout* only = nullptr;
  for (const auto& [rank, layout] : layouts_) {
    if (only && *only != layout) return nullptr;
    only = &layout;
  }
  return only;
}

bool PlanBook::propose(std::uint64_t agreement, std::uint64_t from, const std::vector<int>& microBatches) {
  const std::lock_guard lock(mutex_);
  const Layout* layout = onlyLayout();
  if (!layout || proposal_ || next_ || from < nextIteration_) return false;
  if (static_cast<int>(microBatches.size()) != layout->dataParallelSize) return false;
  for (const int each : microBatches)
    if (each < 1 || each % layout->limits.multiple != 0) return false;
  if (std::accumulate(microBatches.begin(), microBatches.end(), 0) != layout->microBatches) return false;
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

IterationPlan PlanBook::planOf(const Split& split, const Layout& layout) {
  if (static_cast<int>(split.microBatches.size()) != layout.dataParallelSize) return equalSplit(layout);
  IterationPlan plan;
  const auto mine = split.microBatches.begin() + layout.dataParallelIndex;
  plan.microBatches = *mine;
  plan.firstMicroBatch = std::accumulate(split.microBatches.begin(), mine, 0);
  plan.gradientWeight = static_cast<double>(*mine) / layout.microBatches;
  return plan;
}

Result<IterationPlan> PlanBook::begin(const PlannedRank& rank, std::uint64_t iteration) {
  std::unique_lock lock(mutex_);
  const auto known = layouts_.find(rank);
  if (known == layouts_.end())
    return Error::invalidUsage("ncclFalconIterationBegin: call ncclFalconRegisterLayout first");
  const Layout layout = known->second;
  decided_.wait(lock, [&] { return !proposal_ || iteration < proposal_->from; });
  if (iteration >= nextIteration_) nextIteration_ = iteration + 1;
  if (next_ && iteration >= next_->from) {
    inForce_ = std::move(next_);
    next_.reset();
    version_ = inForce_->agreement;
  }
  IterationPlan plan = inForce_ ? planOf(*inForce_, layout) : equalSplit(layout);
  plan.version = version_;
  return plan;
}

std::uint64_t PlanBook::nextIteration() const {
  const std::lock_guard lock(mutex_);
  return nextIteration_;
}

int PlanBook::currentMicroBatches() const {
  const std::lock_guard lock(mutex_);
  const Layout* layout = onlyLayout();
  if (!layout) return 0;
  return (inForce_ ? planOf(*inForce_, *layout) : equalSplit(*layout)).microBatches;
}

}  // namespace falcon::control
