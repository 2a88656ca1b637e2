// What the two ends of a link test write into chunks. Read defensively: a connection may hold what an earlier test
// left.
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "transport/ports.h"

namespace falcon::validate {

inline constexpr int dataChannel = 0;
inline constexpr int questionChannel = 1;

/// Receiver to sender: send this much as this round. `finish`: the test is over.
struct Question {
  static constexpr std::uint32_t expectedMagic = 0x46514c31;
  std::uint32_t magic = expectedMagic;
  std::uint32_t round = 0;
  std::uint64_t run = 0;
  std::uint64_t bytes = 0;       ///< together, headers included; 0: one empty piece
  std::uint32_t pieceBytes = 0;  ///< most bytes of one chunk
  std::uint32_t finish = 0;
};

/// Head of every chunk of data.
struct Piece {
  static constexpr std::uint32_t expectedMagic = 0x46504c31;
  std::uint32_t magic = expectedMagic;
  std::uint32_t round = 0;
  std::uint64_t run = 0;
  std::uint32_t last = 0;                ///< 1: the round ends with this chunk
  std::uint32_t waitedMicroseconds = 0;  ///< with `last`: how long the sender had no core in this round
};

/// The message at the chunk's start; nothing if the chunk holds none of that kind.
template <class Message>
std::optional<Message> readMessage(std::span<const std::byte> chunk) {
  Message message;
  if (chunk.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, chunk.data(), sizeof message);
  if (message.magic != Message::expectedMagic) return std::nullopt;
  return message;
}

template <class Message>
void writeMessage(const Message& message, std::span<std::byte> chunk) {
  std::memcpy(chunk.data(), &message, sizeof message);
}

}  // namespace falcon::validate
