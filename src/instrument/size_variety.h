// Calls that would repeat if their sizes did not count.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/call.h"
#include "base/clock.h"

namespace falcon::instrument {

/// Watches the calls of a process in which no pattern is found. Where sequences have other lengths in every iteration,
/// the messages between pipeline stages have other sizes, while the gradients' sum has not. Bounded memory; used by one
/// thread.
class SizeVariety {
 public:
  /// True: some call has come again eight times, always with the same calls before it but for their sizes, and with
  /// those in four ways or more. It is looked for once a second.
  bool add(const CallRecord& call);
  void clear() { calls_.clear(); }

 private:
  struct Seen {
    std::uint64_t whole, withoutSize;  // hashes
  };
  std::vector<std::uint64_t> lasting() const;
  bool variesBetween(std::uint64_t border) const;

  std::deque<Seen> calls_;
  Nanoseconds looked_{0};
};

}  // namespace falcon::instrument
