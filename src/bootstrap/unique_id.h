// The 128 bytes of ncclUniqueId: where the rendezvous is, and the secret that proves membership.
#pragma once

#include <array>
#include <span>

#include "base/result.h"
#include "base/socket_address.h"
#include "transport/reactor.h"

namespace falcon::bootstrap {

struct UniqueId {
  SocketAddress address;  ///< of the rendezvous
  std::uint64_t key = 0;  ///< names the rendezvous; with NCCL_COMM_ID a hash of the address text
  transport::Secret secret{};
  bool hostMemory = false;  ///< what is made by it moves host memory, whatever devices there are

  /// `seal`: what else must be alike where they are read.
  std::array<char, 128> bytes(std::uint64_t seal = 0) const;
  /// Whether the bytes were meant to be one of ours, of whatever version.
  static bool isOne(std::span<const char, 128> bytes);
  /// invalidArgument for bytes that are not ours, or not whole; it is not logged.
  static Result<UniqueId> read(std::span<const char, 128> bytes, std::uint64_t seal = 0);
  /// The same, and logs.
  static Result<UniqueId> parse(std::span<const char, 128> bytes);
};

}  // namespace falcon::bootstrap
