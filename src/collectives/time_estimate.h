// How long a call will take, by a simple model: what ncclGroupSimulateEnd tells. Pure.
#pragma once

#include <cstdint>

#include "base/call.h"

namespace falcon::collectives {

/// What the model knows of a communicator.
struct LinkModel {
  int ranks = 1;
  bool throughMemory = true;  ///< all ranks share memory; else the slowest links are sockets
};

/// Latency of the hops, plus the bytes that pass the busiest link at a fixed bandwidth. The constants are of the order
/// of a small server's (3 us and 3 GB/s through shared memory, 25 us and 1 GB/s through sockets), not measured on this
/// one, and nothing else is taken to run: for comparing calls, not for promises.
///
/// `traffic` is of AllReduce, the one operation that may go two ways.
enum class Traffic : std::uint8_t { asChosen, ring, tree };
double estimatedMicroseconds(const LinkModel& links, const Call& call, Traffic traffic = Traffic::asChosen);

}  // namespace falcon::collectives
