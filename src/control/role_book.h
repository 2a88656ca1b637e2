// Whether the ranks of the job are to exchange their roles: proposed, decided, and looked up at each iteration's start.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"

namespace falcon::control {

/// Two-phase like the plans of micro-batches. Thread-safe: the monitor proposes and decides, the training thread looks
/// up.
class RoleBook {
 public:
  struct Change {
    std::uint64_t agreement = 0, from = 0;
    std::vector<int> roles;  ///< by rank of the job
  };

  /// The framework can exchange roles.
  void enable();
  bool isEnabled() const;

  /// False when nobody here can exchange roles, iteration `from` has begun here, or another change is not done.
  bool propose(std::uint64_t agreement, std::uint64_t from, std::vector<int> roles);
  void decide(std::uint64_t agreement, bool commit);

  /// What is to be done before `iteration`, once; waits while a proposal for it is undecided.
  std::optional<Change> take(std::uint64_t iteration);
  /// The next iteration that has not begun.
  std::uint64_t nextIteration() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool enabled_ = false;
  std::optional<Change> proposal_, decided_;
  std::uint64_t nextIteration_ = 0;
};

}  // namespace falcon::control
