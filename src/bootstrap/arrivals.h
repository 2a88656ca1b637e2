// Which ranks have come to the rendezvous that this process holds: for who asks what a job waits for at its start.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace falcon::bootstrap {

/// By the key of the unique id. Thread-safe; a forked child begins anew.
class Arrivals {
 public:
  static void note(std::uint64_t key, Rank rank);
  static void forget(std::uint64_t key);
  /// Empty where this process holds no such rendezvous, or nobody has come.
  static std::vector<Rank> at(std::uint64_t key);
};

}  // namespace falcon::bootstrap
