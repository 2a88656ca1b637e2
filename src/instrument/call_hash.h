// One number that stands for a whole call.
#pragma once

#include <cstdint>

#include "base/call.h"

namespace falcon::instrument {

/// A hash with one more value in it. The finaliser of MurmurHash3: every input bit reaches every output bit.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return hash ^ hash >> 33;
}

/// Equal for calls that ask for the same: communicator, operation, type, count, peer, reduction; times and the sequence
/// number do not count. Different calls differ with overwhelming likelihood. Not for secrets.
/// The papers' code compares operations only, and so takes (A,B)x32 with one marker for a period of 2.
/// @param sizes  false: nor does the count
constexpr std::uint64_t callHash(const CallRecord& call, bool sizes = true) {
  std::uint64_t hash = mixed(0x9e3779b97f4a7c15ULL, call.communicator);
  hash = mixed(hash, static_cast<std::uint64_t>(call.operation) << 16 | static_cast<std::uint64_t>(call.type) << 8 |
                         static_cast<std::uint64_t>(call.reduction));
  hash = mixed(hash, sizes ? call.count : 0);
  return mixed(hash, static_cast<std::uint32_t>(call.peer));
}

}  // namespace falcon::instrument
