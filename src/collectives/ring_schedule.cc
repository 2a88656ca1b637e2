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
  return *orderFor(nextStart_.load(std::memory_order_relaxed));
}

RingSchedule::Order RingSchedule::start(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (proposal_ && number >= proposal_->from) {
    nextStart_.store(number, std::memory_order_relaxed);  // it has not started
    return nullptr;
  }
  // Numbers only grow: what an earlier decision said is over.
  decided_.erase(decided_.begin(), std::prev(decided_.upper_bound(number)));
  nextStart_.store(number + 1, std::memory_order_relaxed);
  look();
  inForce_ = decided_.begin()->second.get();
  return decided_.begin()->second;
}

Status RingSchedule::propose(std::uint64_t from, std::vector<Rank> order) {
  const std::lock_guard lock(mutex_);
  if (proposal_)
    return log::decided(Error::invalidUsage("a ring order from collective {} on is still undecided", proposal_->from));
  const auto& known = *decided_.begin()->second;
  if (!std::is_permutation(order.begin(), order.end(), known.begin(), known.end()))
    return log::decided(Error::invalidUsage("the proposed ring order does not name every rank once"));
  // From here on no collective starts without the lock. One that did has its number seen.
  changing_.store(true, std::memory_order_relaxed);
  heavyFence();
  const std::uint64_t next = nextStart_.load(std::memory_order_relaxed);
  if (from < next) {
    look();
    return log::decided(Error::invalidUsage("collective {} has started; the next one is {}", from, next));
  }
  proposal_ = Proposal{from, std::make_shared<const std::vector<Rank>>(std::move(order))};
  return {};
}

void RingSchedule::decide(std::uint64_t from, bool commit) {
  const std::lock_guard lock(mutex_);
  if (!proposal_ || proposal_->from != from) return;
  if (commit) decided_[from] = proposal_->order;
  proposal_.reset();
  look();
}

}  // namespace falcon::collectives
