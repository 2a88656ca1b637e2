// Who asked the controller for something that takes its time.
#pragma once

#include <cstdint>

#include "control/outbox.h"

namespace falcon::control {

/// Requests of a process count up. One that comes twice was said again, since the controller has changed in between.
struct RequestId {
  ProcessId from = 0;
  std::uint64_t number = 0;
  bool operator==(const RequestId&) const = default;
};

}  // namespace falcon::control
