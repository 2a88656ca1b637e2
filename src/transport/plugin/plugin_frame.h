// What stands before every chunk in a message through a plugin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "transport/chunk_ring.h"
#include "transport/plugin/net_abi.h"
#include "transport/ports.h"
#include "transport/reactor.h"

namespace falcon::transport {

/// A plugin proves nothing of who connects. Who sends this knows what the two ranks have told each other over a
/// connection that is proven.
using PluginToken = std::array<std::byte, 16>;

/// Of as many bytes as keep the payload aligned for the reducers.
struct alignas(64) PluginFrame {
  static constexpr std::uint32_t expectedMagic = 0x46434e31;
  std::uint32_t magic = expectedMagic;
  std::uint32_t length = 0;     ///< of the chunk
  std::uint64_t sequence = 0;   ///< its number
  std::uint64_t announced = 0;  ///< chunks that will have been sent in any case: so many may be waited for
  PluginToken token{};
};
static_assert(sizeof(PluginFrame) == 64);

/// What a message through a plugin takes.
constexpr std::size_t pluginMessageBytes(std::size_t chunkBytes) {
  return sizeof(PluginFrame) + chunkBytes;
}
/// What a slot for one takes.
constexpr std::size_t pluginSlotBytes(std::size_t chunkBytes) {
  return (pluginMessageBytes(chunkBytes) + sizeof(PluginFrame) - 1) / sizeof(PluginFrame) * sizeof(PluginFrame);
}
// Each chunk is one request.
static_assert(chunkSlots <= net::mostRequests);

/// Where the receiving end listens, in the plugin's words.
using PluginHandle = std::array<char, net::handleBytes>;

/// The same on both ends of one directed connection, and guessed by nobody who knows neither secret nor handle.
PluginToken pluginToken(const Secret& secret, CommunicatorId communicator, Rank from, Rank to, int channel, Lane lane,
                        const PluginHandle& handle);

}  // namespace falcon::transport
