// What a device's own counters say of the network, where a connection's transport tells less: RDMA, whose devices count
// for all of their connections together. Pure. See falcon_net_state.h for the formula.
#pragma once

#include <cstdint>

#include "falcon_net_state.h"

namespace falcon::net {

/// What devices count that a reading has no field for; 0 where they do not.
struct DeviceCounts {
  std::uint64_t packetsSent = 0;
  std::uint64_t timeouts = 0;  ///< acknowledgements that did not come in time
};

/// Each 0..1; below 0: not known.
struct DeviceSigns {
  double held = -1;        ///< of the time that the port had data, that it was not let send
  double contention = -1;  ///< marks of switches, or losses
  bool isKnown() const { return held >= 0 || contention >= 0; }
};

struct DeviceReading {
  falconNetDevice_v1 state{};
  DeviceCounts counts{};
};

/// @param now  not older than `before`, and of the same device
DeviceSigns signsOf(const DeviceReading& before, const DeviceReading& now);

}  // namespace falcon::net
