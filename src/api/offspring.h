// The order in which communicators are made of another one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

namespace falcon::api {

/// What is being made of one communicator, in the order in which it was asked for. The ranks find each other by that
/// order: two splits at once would give each other's members. Thread-safe.
class Offspring {
 public:
  /// Takes the place behind all others, to be given back. `instead`: of them; nobody waits for what they do any more.
  std::uint64_t queue(bool instead);
  /// Until all that have queued before are done.
  void await(std::uint64_t place);
  void done(std::uint64_t place);
  bool anyUnderWay() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::set<std::uint64_t> underWay_;
};

}  // namespace falcon::api
