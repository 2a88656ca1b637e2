// One connection over several sockets: chunk after chunk goes to the next, so several streams share the way.
#pragma once

#include <memory>
#include <vector>

#include "transport/socket_port.h"

namespace falcon::transport {

/// The most sockets of a connection, as NCCL's.
inline constexpr int mostStreams = 64;

/// Over one socket or several. The receiver has as many; equal places in the two lists are connected.
std::unique_ptr<SendPort> makeSocketSendPort(std::vector<SharedSocket> sockets, const std::string& peerName,
                                             std::size_t chunkBytes, const std::shared_ptr<LinkThrottle>& throttle,
                                             std::atomic<std::uint64_t>& bytesSent);
std::unique_ptr<ReceivePort> makeSocketReceivePort(std::vector<SharedSocket> sockets, const std::string& peerName,
                                                   std::size_t chunkBytes);

}  // namespace falcon::transport
