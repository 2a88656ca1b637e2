// What the two ends of a connection tell each other over TCP, so that their queue pairs find each other.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace falcon::net {

struct EndFacts {
  std::uint8_t linkLayer = IBV_LINK_LAYER_UNSPECIFIED;
  std::uint8_t mtu = IBV_MTU_1024;  ///< as enum ibv_mtu: the port's
  std::uint16_t lid = 0;            ///< InfiniBand
  std::uint32_t pair = 0;           ///< number of the queue pair, 24 bits
  std::uint32_t firstPacket = 0;    ///< its first packet's number, 24 bits
  ibv_gid gid{};

  /// Bytes of text().
  static constexpr std::size_t textBytes = 32;
  std::string text() const;
  /// Nothing: those are none, or of another release.
  static std::optional<EndFacts> read(std::string_view text);
};

}  // namespace falcon::net
