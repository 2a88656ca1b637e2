#include "control/role_book.h"

#include <algorithm>
#include <utility>

namespace falcon::control {

void RoleBook::enable() {
  const std::lock_guard lock(mutex_);
  enabled_ = true;
}

bool RoleBook::isEnabled() const {
  const std::lock_guard lock(mutex_);
  return enabled_;
}

bool RoleBook::propose(std::uint64_t agreement, std::uint64_t from, std::vector<int> roles) {
  const std::lock_guard lock(mutex_);
  if (!enabled_ || proposal_ || decided_ || from < nextIteration_) return false;
  proposal_ = Change{agreement, from, std::move(roles)};
  return true;
}

void RoleBook::decide(std::uint64_t agreement, bool commit) {
  {
    const std::lock_guard lock(mutex_);
    if (!proposal_ || proposal_->agreement != agreement) return;
    if (commit) decided_ = std::move(proposal_);
    proposal_.reset();
  }
  changed_.notify_all();
}

std::optional<RoleBook::Change> RoleBook::take(std::uint64_t iteration) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !proposal_ || iteration < proposal_->from; });
  nextIteration_ = std::max(nextIteration_, iteration + 1);
  if (!decided_ || iteration < decided_->from) return std::nullopt;
  return std::exchange(decided_, std::nullopt);
}

std::uint64_t RoleBook::nextIteration() const {
  const std::lock_guard lock(mutex_);
  return nextIteration_;
}

}  // namespace falcon::control
