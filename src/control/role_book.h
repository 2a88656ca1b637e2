// Whether the ranks of the job are to exchange their roles: proposed, decided, and looked up at each iteration's start.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"

namespace falcon::control {

/// Two-phase like the plans of micro-batches. Thread-safe: the monitor proposes and decides, the training thread looks
/// up.
class RoleBook {
 public:
  struct Change {
    std::uint64_t agreement = 0, from = 0;
    std::vector<int> roles;   ///< by rank of the job
    std::vector<Link> avoid;  ///< slow links between ranks of the job
  };

  /// As the numbers that an agreement is about.
  static std::vector<std::int32_t> encode(std::span<const int> roles, std::span<const Link> avoid);

  /// The framework can exchange roles.
  void enable();
  bool isEnabled() const;

  /// `numbers`: see encode(). False when they are none, nobody here can exchange roles, iteration `from` has begun
  /// here, or another change is not done.
  bool propose(std::uint64_t agreement, std::uint64_t from, std::span<const std::int32_t> numbers);
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
