// The plain values that all folders speak of.
#pragma once

#include <compare>
#include <cstdint>

namespace falcon {

/// Position in a communicator or in the job; which one is said where it is used.
using Rank = int;

/// Same on all members of one communicator, different (with overwhelming likelihood) between communicators of a job.
using CommunicatorId = std::uint64_t;

/// An ordered pair of ranks: bytes flow from `from` to `to`.
struct Link {
  Rank from = -1;
  Rank to = -1;
  auto operator<=>(const Link&) const = default;
};

}  // namespace falcon
