// Which ring order a collective uses: the one in force, replaced at an agreed collective number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

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

  /// See HostCommunicator.
  Status propose(std::uint64_t from, std::vector<Rank> order);
  void decide(std::uint64_t from, bool commit);

 private:
  Order orderFor(std::uint64_t number) const;

  struct Proposal {
    std::uint64_t from;
    Order order;
  };

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Order> decided_;  // by first collective; the last one at or before a number is in force
  std::optional<Proposal> proposal_;
  std::uint64_t nextStart_ = 0;
};

}  // namespace falcon::collectives
