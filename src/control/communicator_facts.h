// What others are told of a communicator of this process. Pure.
#pragma once

#include "control/job.h"
#include "control/messages.h"
#include "instrument/call_log.h"

namespace falcon::control {

/// For the controller.
CommunicatorFormed formedFrom(const KnownCommunicator& communicator);

/// For the readers of the call log.
instrument::CommunicatorEntry logEntryOf(const KnownCommunicator& communicator);

}  // namespace falcon::control
