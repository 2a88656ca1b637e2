// What goes over the connection from who writes into windows to their owner: a header, the bytes, and back an answer.
#pragma once

#include <cstdint>

namespace falcon::transport {

/// One message: `bytes` for the window, then a signal.
struct WindowHeader {
  static constexpr std::uint32_t expectedMagic = 0x4643'5731;
  std::uint32_t magic = expectedMagic;
  std::uint32_t kind = 0;    ///< of the signal
  std::uint64_t window = 0;  ///< its number; 0: there is only the signal
  std::uint64_t offset = 0;  ///< bytes from the window's beginning
  std::uint64_t bytes = 0;
};
static_assert(sizeof(WindowHeader) == 32);

/// What became of a message. The next one is sent after it.
struct WindowAnswer {
  enum class Outcome : std::uint64_t {
    done = 1,   ///< it is in the window, and the signal is counted
    closed,     ///< the window was given back, or its owner failed to register it; nothing was written, or a part
    tooShort,   ///< it does not fit; nothing was written
    unreadable  ///< the window is not memory that can be written to
  };
  Outcome outcome = Outcome::done;
  std::uint64_t windowBytes = 0;  ///< tooShort: what the window has
};
static_assert(sizeof(WindowAnswer) == 16);

}  // namespace falcon::transport
