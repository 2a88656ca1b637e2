// What the kernel counts of an RDMA port, under /sys/class/infiniband/<device>/ports/<n>.
#pragma once

#include <string>

#include "core/device_signs.h"
#include "falcon_net_state.h"

namespace falcon::net {

/// Reads them into a device's reading, each with its bit of `valid`, where the driver has it; and what that has no
/// field for. docs/net-state.md says which file is which field.
/// @param folder  of the port
void readPortCounters(const std::string& folder, falconNetDevice_v1& reading, DeviceCounts& counts);

/// Mbit/s by the text of `rate`, "100 Gb/sec (4X EDR)"; 0: that is none.
int speedOf(const std::string& rate);

}  // namespace falcon::net
