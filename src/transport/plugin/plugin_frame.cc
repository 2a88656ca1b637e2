#include "transport/plugin/plugin_frame.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/wire.h"

namespace falcon::transport {

PluginToken pluginToken(const Secret& secret, CommunicatorId communicator, Rank from, Rank to, int channel, Lane lane,
                        const PluginHandle& handle) {
  WireWriter said;
  said.put(std::string_view("net plugin")).put(communicator).put(from).put(to).put(channel);
  said.put(static_cast<std::uint8_t>(lane)).put(std::string_view(handle.data(), handle.size()));
  const Digest digest = hmacSha256(secret, said.bytes());
  PluginToken token;
  std::copy_n(digest.begin(), token.size(), token.begin());
  return token;
}

}  // namespace falcon::transport
