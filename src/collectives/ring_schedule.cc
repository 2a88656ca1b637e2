#include "collectives/ring_schedule.h"

#include <algorithm>

#include "base/log.h"

namespace falcon::collectives {

RingSchedule::RingSchedule(std::vector<Rank> order) {
  decided_.emplace(0, std::make_shared<const std::vector<Rank>>(std::move(order)));
}

RingSchedule::Order RingSchedule::orderFor(std::uint64_t number) const {
  return std::prev(decided_.upper_bound(number))->second;
}

std::vector<Rank> RingSchedule::current() const {
  const std::lock_guard lock(mutex_);
  return *orderFor(nextStart_);
}

RingSchedule::Order RingSchedule::start(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (proposal_ && number >= proposal_->from) return nullptr;
  // Numbers only grow: what an earlier decision said is over.
  decided_.erase(decided_.begin(), std::prev(decided_.upper_bound(number)));
  nextStart_ = number + 1;
  return decided_.begin()->second;
}

Status RingSchedule::propose(std::uint64_t from, std::vector<Rank> order) {
  const std::lock_guard lock(mutex_);
  if (proposal_)
    return log::decided(Error::invalidUsage("a ring order from collective {} on is still undecided", proposal_->from));
  if (from < nextStart_)
    return log::decided(Error::invalidUsage("collective {} has started; the next one is {}", from, nextStart_));
  const auto& known = *decided_.begin()->second;
  if (!std::is_permutation(order.begin(), order.end(), known.begin(), known.end()))
    return log::decided(Error::invalidUsage("the proposed ring order does not name every rank once"));
  proposal_ = Proposal{from, std::make_shared<const std::vector<Rank>>(std::move(order))};
  return {};
}

void RingSchedule::decide(std::uint64_t from, bool commit) {
  const std::lock_guard lock(mutex_);
  if (!proposal_ || proposal_->from != from) return;
  if (commit) decided_[from] = proposal_->order;
  proposal_.reset();
}

}  // namespace falcon::collectives
