#include "transport/plugin/net_check.h"

#include "base/format.h"

namespace falcon::transport::net {

std::optional<std::string> objectionTo(const NetCalls& calls) {
  std::string members;
  for (const char* member : calls.missing()) members += fmt::format("{}{}", members.empty() ? "" : ", ", member);
  if (members.empty()) return std::nullopt;
  return "its struct lacks " + members;
}

std::optional<std::string> objectionTo(const DeviceProperties& device, int number, std::size_t messageBytes) {
  const auto wrong = [&](std::string_view what) { return fmt::format("device {} {}", number, what); };
  if (!device.name) return wrong("has no name");
  const auto wrongOf = [&](std::string_view what) {
    return fmt::format("device {} ({}) {}", number, device.name, what);
  };
  if (!(device.memory & hostMemory))
    return wrongOf(fmt::format("cannot reach memory of the host (ptrSupport is {})", device.memory));
  if (device.kind != hostDevice)
    return wrongOf(fmt::format("is to be driven by a GPU (netDeviceType is {})", device.kind));
  if (device.connections < 1) return wrongOf(fmt::format("has maxComms {}", device.connections));
  if (device.receives < 1) return wrongOf(fmt::format("has maxRecvs {}", device.receives));
  if (device.parts < 1 || device.parts > device.mostParts)
    return wrongOf(fmt::format("is made of {} devices; 1 to {} are possible", device.parts, device.mostParts));
  if (device.longestMessage < messageBytes)
    return wrongOf(fmt::format("carries messages of at most {} bytes, {} are needed: lower NCCL_BUFFSIZE",
                               device.longestMessage, messageBytes));
  return std::nullopt;
}

}  // namespace falcon::transport::net
