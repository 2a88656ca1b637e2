// The vendor's calls as the device went through them: pure glue to gpu/device_times.h.
#pragma once

#include <set>
#include <vector>

#include "control/messages.h"
#include "gpu/device_times.h"

namespace falcon::control {

/// Calls of the `vendors` communicators, which end when they have launched, get the times of the device: from when it
/// came to them to when it was done. Those that were not timed (captured into a graph, not done yet) are left out, so
/// that launches and device times are never mixed; so are those that are not on the host's clock, where there are calls
/// of others beside them. In the order in which they begin.
CallTimes asOnDevice(std::vector<TimedCall> calls, const std::set<CommunicatorId>& vendors,
                     std::vector<gpu::DeviceTime> times);

}  // namespace falcon::control
