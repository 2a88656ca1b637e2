// What the net plugin in use tells of the network (falcon_net_state.h), and how that goes into a file for `falcon`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "falcon_net_state.h"

namespace falcon::transport::net {

struct NetSnapshot {
  std::string plugin;  ///< as it names itself
  std::vector<falconNetDevice_v1> devices;
  std::vector<falconNetConnection_v1> connections;
};

/// Of a plugin that exports the interface. Nothing: it fails. Thread-safe.
std::optional<NetSnapshot> snapshotOf(const falconNetState_v1_t& state);
/// Of the plugin that this process's host engine uses. Nothing: it uses none, or one that tells nothing. Thread-safe.
std::optional<NetSnapshot> netSnapshot();

/// Of at most that many connections: those that send first.
inline constexpr std::size_t mostConnectionsShown = 1024;
std::string encode(const NetSnapshot& snapshot);
/// Nothing: that is no snapshot of this release.
std::optional<NetSnapshot> decodeNetSnapshot(std::string_view bytes);

}  // namespace falcon::transport::net
