#include "socket/socket_network.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "base/parameters.h"
#include "base/text.h"
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

/// Of lines `  eth0: bytes packets ...`: eight columns of what came, then those of what was sent.
std::optional<std::uint64_t> bytesSentBy(const std::string& interface) {
  constexpr std::size_t column = 8;
  const std::string all = readText("/proc/thread-self/net/dev");
  for (const std::string_view line : split(all, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (line.substr(std::min(line.find_first_not_of(' '), colon), colon).substr(0, interface.size() + 1) !=
        interface + ":")
      continue;
    std::vector<std::string_view> words = split(line.substr(colon + 1), ' ');
    std::erase(words, std::string_view());
    return words.size() > column ? leadingNumber<std::uint64_t>(words[column]) : std::nullopt;
  }
  return std::nullopt;
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
  std::shared_ptr<Dialling> dialling;
  {
    const std::lock_guard lock(mutex_);
    dialling = diallingOf(device, *from, handle);
  }
  std::uint64_t number = 0;
  if (const auto noted = readHandle(handle)) number = noted->dialling;
  auto sockets = dialling->progress();
  if (!sockets) {
    forget(number);
    noteDialling(handle, 0);
    return sockets.error();
  }
  if (!*sockets) return std::unique_ptr<Connection>();
  forget(number);
  noteDialling(handle, 0);
  return SocketSender::make(device, std::move(**sockets), from->address.text());
}

std::shared_ptr<Dialling> SocketNetwork::diallingOf(int device, const SocketHandle& from, Handle handle) {
  const auto known = diallings_.find(from.dialling);
  if (known != diallings_.end() && known->second->isAbout(from)) return known->second;
  const Nanoseconds now = SystemClock::instance().now();
  std::erase_if(diallings_, [&](const auto& entry) { return entry.second->isOverdue(now); });
  const std::uint64_t number = ++lastDialling_;
  auto fresh = std::make_shared<Dialling>(from, addresses_[static_cast<std::size_t>(device)], socketsPerConnection());
  diallings_[number] = fresh;
  noteDialling(handle, number);
  return fresh;
}

void SocketNetwork::forget(std::uint64_t dialling) {
  const std::lock_guard lock(mutex_);
  diallings_.erase(dialling);
}

void SocketNetwork::sample(int device, falconNetDevice_v1& reading) {
  // Not from /sys: that is of the network namespace in which it was mounted.
  const auto sent = bytesSentBy(devices_[static_cast<std::size_t>(device)].name);
  if (!sent) return;
  reading.interfaceBytes = *sent;
  reading.valid |= FALCON_NET_INTERFACE;
}

}  // namespace falcon::net
