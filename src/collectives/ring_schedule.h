// Which ring order a collective uses: the one in force, replaced at an agreed collective number.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/asymmetric_fence.h"
#include "base/result.h"
#include "base/types.h"

namespace falcon::collectives {

/// Thread-safe: collectives start in the application's thread, proposals come from the monitor's.
class RingSchedule {
 public:
  using Order = std::shared_ptr<const std::vector<Rank>>;

  explicit RingSchedule(std::vector<Rank> order);

  /// The ring of the next collective to start, as far as it is decided.
  std::vector<Rank> current() const;
  /// Starts collective `number` (they start in order): its ring; null while a proposal that would concern it is
  /// undecided.
  Order start(std::uint64_t number);
  /// The same for one that needs no ring, without a lock. False: a change is under way, ask start().
  bool startWithoutRing(std::uint64_t number) {
    nextStart_.store(number + 1, std::memory_order_relaxed);
    lightFence(reliesOnHeavyFences_);
    return !changing_.load(std::memory_order_relaxed);
  }

  /// The same for one whose ring would be `order`, as that of the one before was. False: it may be another, ask
  /// start().
  bool startOn(const Order& order, std::uint64_t number) { return startWithoutRing(number) && inForce_ == order.get(); }

  /// See HostCommunicator.
  Status propose(std::uint64_t from, std::vector<Rank> order);
  void decide(std::uint64_t from, bool commit);

 private:
  Order orderFor(std::uint64_t number) const;
  void look() { changing_.store(proposal_ || decided_.size() > 1, std::memory_order_relaxed); }

  struct Proposal {
    std::uint64_t from;
    Order order;
  };

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Order> decided_;  // by first collective; the last one at or before a number is in force
  std::optional<Proposal> proposal_;
  std::atomic<std::uint64_t> nextStart_{0};     // written by the thread that starts collectives
  std::atomic<bool> changing_{false};           // a proposal is undecided, or a decision not yet in force
  const std::vector<Rank>* inForce_ = nullptr;  // since the last start(); only for the thread that starts collectives
  const bool reliesOnHeavyFences_ = takePartInHeavyFences();
};

}  // namespace falcon::collectives
