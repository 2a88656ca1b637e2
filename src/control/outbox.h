// How the controller speaks: behind an interface, so that tests play the members.
#pragma once

#include "bootstrap/bus.h"
#include "control/messages.h"

namespace falcon::control {

using bootstrap::ProcessId;

class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void to(ProcessId process, const Message& message) = 0;
  virtual void toAll(const Message& message) = 0;
};

}  // namespace falcon::control
