// RDMA devices that there are not.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

namespace falcon::net::test {

/// What a device of this kind has.
struct FakeDevice {
  std::string name;
  ibv_device_attr attributes{};
  std::vector<ibv_port_attr> ports;  // the first is number 1
  std::vector<ibv_gid_entry> gids;   // of every port
};

/// A RoCE device with one active port, at 10.0.0.`last`: GIDs of the link (v1, v2), then of IPv4 (v1, v2).
FakeDevice roceDevice(const std::string& name, std::uint8_t last);
FakeDevice infinibandDevice(const std::string& name, std::uint16_t lid);

}  // namespace falcon::net::test
