#include "control/restart_book.h"

#include <algorithm>
#include <utility>

namespace falcon::control {

bool RestartBook::propose(std::uint64_t agreement, std::uint64_t from, std::vector<Rank> leaveOut) {
  const std::lock_guard lock(mutex_);
  if (!asked_ || proposal_ || decided_ || from < nextIteration_) return false;
  proposal_ = Proposal{agreement, from, std::move(leaveOut)};
  return true;
}

void RestartBook::decide(std::uint64_t agreement, bool commit) {
  {
    const std::lock_guard lock(mutex_);
    if (!proposal_ || proposal_->agreement != agreement) return;
    if (commit) decided_ = std::move(proposal_);
    proposal_.reset();
  }
  changed_.notify_all();
}

bool RestartBook::wanted(std::uint64_t iteration) {
  std::unique_lock lock(mutex_);
  asked_ = true;
  changed_.wait(lock, [&] { return !proposal_ || iteration < proposal_->from; });
  nextIteration_ = std::max(nextIteration_, iteration + 1);
  return decided_ && iteration >= decided_->from;
}

bool RestartBook::isDecidedFor(std::uint64_t iteration) const {
  const std::lock_guard lock(mutex_);
  return decided_ && iteration >= decided_->from;
}

bool RestartBook::isAsked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::uint64_t RestartBook::nextIteration() const {
  const std::lock_guard lock(mutex_);
  return nextIteration_;
}

std::optional<std::vector<Rank>> RestartBook::decided() const {
  const std::lock_guard lock(mutex_);
  if (!decided_) return std::nullopt;
  return decided_->leaveOut;
}

}  // namespace falcon::control
