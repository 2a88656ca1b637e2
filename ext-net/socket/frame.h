// What stands before each piece of a message on a socket.
#pragma once

#include <cstdint>

namespace falcon::net {

/// A message is sent in pieces, each on the first socket that has room. So a piece says where it belongs; the pieces of
/// one socket come in the order of their messages. Both ends have the same byte order (x86-64).
struct Frame {
  static constexpr std::uint32_t expectedMagic = 0x464e4d31;
  std::uint32_t magic = expectedMagic;
  std::uint32_t message = 0;  ///< its number, which wraps
  std::uint64_t total = 0;    ///< bytes of the message
  std::uint64_t offset = 0;   ///< of this piece in it
  std::uint64_t length = 0;   ///< of this piece; follows right behind
};
static_assert(sizeof(Frame) == 32);

}  // namespace falcon::net
