#include "socket/socket_network.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/parameters.h"
#include "base/text.h"
#include "socket/interface_bytes.h"
#include "socket/socket_listener.h"
#include "socket/socket_sender.h"
#include "transport/interface_address.h"

namespace falcon::net {
namespace {

/// What is assumed where the interface does not say, as NCCL does.
constexpr int usualSpeed = 10'000;

std::string folderOf(const std::string& interface) {
  return "/sys/class/net/" + interface;
}

Device deviceOf(const std::string& interface, std::size_t number) {
  Device device;
  device.name = interface;
  device.guid = number;
  device.speed = leadingNumber<int>(readText(folderOf(interface) + "/speed")).value_or(0);
  if (device.speed <= 0) device.speed = usualSpeed;
  std::error_code none;
  const auto path = std::filesystem::canonical(folderOf(interface) + "/device", none);
  if (!none) device.pciPath = path.string();
  return device;
}

std::size_t socketsPerConnection() {
  return static_cast<std::size_t>(std::min<std::int64_t>(
      parameters::socketThreads.value() * parameters::socketsPerThread.value(), SocketGreeting::mostSockets));
}

}  // namespace

Result<std::span<const Device>> SocketNetwork::devices() {
  const std::lock_guard lock(mutex_);
  if (devices_.empty()) {
    const auto interfaces = transport::chooseInterfaces();
    if (!interfaces) return interfaces.error();
    std::string names;
    for (const auto& one : *interfaces) {
      devices_.push_back(deviceOf(one.name, devices_.size()));
      addresses_.push_back(one.address);
      names += fmt::format("{}[{}]{}:{}", names.empty() ? "" : " ", devices_.size() - 1, one.name, one.address.host());
    }
    log::info("Using {}: {} socket{} a connection", names, socketsPerConnection(),
              socketsPerConnection() == 1 ? "" : "s");
  }
  return std::span<const Device>(devices_);
}

Result<std::unique_ptr<Listener>> SocketNetwork::listen(int device, Handle handle) {
  return SocketListener::make(device, addresses_[static_cast<std::size_t>(device)], handle);
}

Result<std::unique_ptr<Connection>> SocketNetwork::connect(int device, Handle handle) {
  const auto from = readHandle(handle);
  if (!from) return from.error();
  const auto dialling = diallings_.find(*from, handle, [&] {
    return std::make_shared<Dialling>(*from, addresses_[static_cast<std::size_t>(device)], socketsPerConnection());
  });
  auto sockets = dialling->progress();
  if (sockets && !*sockets) return std::unique_ptr<Connection>();
  diallings_.forget(handle);
  if (!sockets) return sockets.error();
  return SocketSender::make(device, std::move(**sockets), from->address.text());
}

void SocketNetwork::sample(int device, falconNetDevice_v1& reading, DeviceCounts&) {
  // Not from /sys: that is of the network namespace in which it was mounted.
  const auto sent = sentBytes(readText("/proc/thread-self/net/dev"), devices_[static_cast<std::size_t>(device)].name);
  if (!sent) return;
  reading.interfaceBytes = *sent;
  reading.valid |= FALCON_NET_INTERFACE;
}

}  // namespace falcon::net
