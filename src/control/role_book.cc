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

std::vector<std::int32_t> RoleBook::encode(std::span<const int> roles, std::span<const Link> avoid) {
  std::vector<std::int32_t> numbers{static_cast<std::int32_t>(roles.size())};
  numbers.insert(numbers.end(), roles.begin(), roles.end());
  for (const Link& link : avoid) numbers.insert(numbers.end(), {link.from, link.to});
  return numbers;
}

bool RoleBook::propose(std::uint64_t agreement, std::uint64_t from, std::span<const std::int32_t> numbers) {
  if (numbers.empty() || numbers[0] < 0 || static_cast<std::size_t>(numbers[0]) >= numbers.size()) return false;
  const auto roles = numbers.subspan(1, static_cast<std::size_t>(numbers[0]));
  const auto links = numbers.subspan(1 + roles.size());
  if (links.size() % 2 != 0) return false;
  Change change{agreement, from, {roles.begin(), roles.end()}, {}};
  for (std::size_t i = 0; i < links.size(); i += 2) change.avoid.push_back({links[i], links[i + 1]});
  const std::lock_guard lock(mutex_);
  if (!enabled_ || proposal_ || decided_ || from < nextIteration_) return false;
  proposal_ = std::move(change);
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
