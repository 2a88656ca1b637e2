#include "verbs/verbs_network.h"

#include <endian.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/net_parameters.h"
#include "base/system_error.h"
#include "base/text.h"
#include "core/meeting_listener.h"
#include "transport/interface_address.h"
#include "verbs/gid_choice.h"
#include "verbs/port_counters.h"
#include "verbs/port_rule.h"
#include "verbs/verbs_end.h"

namespace falcon::net {
namespace {

/// What is assumed where the port does not say.
constexpr int usualSpeed = 10'000;
constexpr int dmaBufferMemory = 4;  // NCCL_PTR_DMABUF
constexpr int mostConnections = 1 << 16;

std::string listOf(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

/// One where the device does not say: that opens it again, and says why.
int portsOf(Verbs& verbs, const std::string& device) {
  ibv_context* const context = verbs.open(device);
  if (!context) return 1;
  ibv_device_attr attributes{};
  const int number = verbs.query(context, attributes);
  verbs.close(context);
  return number == 0 ? attributes.phys_port_cnt : 1;
}

}  // namespace

Result<std::span<const Device>> VerbsNetwork::devices() {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  if (devices_.empty())
    if (const Status opened = open(); !opened) return *(failure_ = opened.error());
  return std::span<const Device>(devices_);
}

Status VerbsNetwork::open() {
  if (const Status loaded = verbs_.load(); !loaded)
    return log::decided(Error::system("there is no RDMA device to use: {}", loaded.error().message()));
  std::vector<std::string> names;
  if (const int number = verbs_.deviceNames(names); number != 0)
    return log::decided(Error::system("there is no RDMA device to use: the kernel lists none ({})", reasonOf(number)));
  if (names.empty())
    return log::decided(
        Error::system("there is no RDMA device to use: the kernel lists none; `ibv_devices` would show them"));
  std::sort(names.begin(), names.end());
  const auto addresses = transport::chooseInterfaces();
  if (!addresses) return addresses.error();
  const std::string rule = parameters::ibDevices.value();
  std::vector<std::unique_ptr<VerbsPort>> ports;
  std::optional<Error> last;
  for (const std::string& name : names) {
    for (int number = 1, count = portsOf(verbs_, name); number <= count; ++number) {
      if (!allowsPort(rule, name, number)) continue;
      auto port = VerbsPort::open(verbs_, name, number, clock_);
      if (!port) last = port.error();
      if (port && *port) ports.push_back(std::move(*port));
    }
  }
  if (ports.empty() && last) return *last;
  if (ports.empty())
    return log::decided(Error::system("there is no RDMA device to use: of {} none has an active port that {}={} allows",
                                      listOf(names), parameters::ibDevices.name(), rule));
  address_ = addresses->front().address;
  std::string said;
  for (auto& port : ports) {
    devices_.push_back(describe(*port));
    said += fmt::format("{}[{}]{}/{} at {} (GID index {})", said.empty() ? "" : " ", devices_.size() - 1, port->name(),
                        port->isEthernet() ? "RoCE" : "IB", textOf(port->gid().gid), port->gid().gid_index);
  }
  ports_ = std::move(ports);
  log::info("Using {}; ends meet at {}", said, address_.host());
  return {};
}

std::string VerbsNetwork::folderOf(const VerbsPort& port) const {
  return fmt::format("{}/{}/ports/{}", tree_, port.device(), port.number());
}

Device VerbsNetwork::describe(const VerbsPort& port) const {
  Device device;
  device.name = port.device();
  device.port = port.number();
  device.guid = be64toh(port.deviceAttributes().sys_image_guid);
  device.speed = speedOf(readText(folderOf(port) + "/rate"));
  if (device.speed <= 0) device.speed = usualSpeed;
  device.connections = std::clamp(port.deviceAttributes().max_qp, 1, mostConnections);
  if (port.reachesDmaBuffers()) device.memory |= dmaBufferMemory;
  std::error_code none;
  const auto path = std::filesystem::canonical(tree_ + "/" + port.device() + "/device", none);
  if (!none) device.pciPath = path.string();
  return device;
}

Result<std::unique_ptr<Listener>> VerbsNetwork::listen(int device, Handle handle) {
  return MeetingListener::make(address_, handle, ends(device, false));
}

Result<std::unique_ptr<Connection>> VerbsNetwork::connect(int device, Handle handle) {
  return meet(diallings_, handle, address_, ends(device, true));
}

MakeLooseEnd VerbsNetwork::ends(int device, bool sends) const {
  return [&port = *ports_[static_cast<std::size_t>(device)], device, sends] {
    return VerbsEnd::make(port, device, sends);
  };
}

void VerbsNetwork::sample(int device, falconNetDevice_v1& reading, DeviceCounts& counts) {
  readPortCounters(folderOf(*ports_[static_cast<std::size_t>(device)]), reading, counts);
}

}  // namespace falcon::net
