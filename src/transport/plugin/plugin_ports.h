// Ports whose way through the network is a net plugin's.
#pragma once

#include <memory>
#include <vector>

#include "transport/local_ports.h"
#include "transport/plugin/net_directory.h"

namespace falcon::transport {

/// Connections of `base` between ranks that do not share memory carry only where the plugin listens; what they would
/// have carried goes through the plugin. The others, and a rank's to itself, stay as they are.
/// The rest is as for makeLocalPorts(), of which `base` is.
std::unique_ptr<Ports> makePluginPorts(std::unique_ptr<Ports> base, std::shared_ptr<net::NetSession> session,
                                       CommunicatorId communicator, const Secret& secret, Rank self,
                                       std::vector<Peer> peers);

}  // namespace falcon::transport
