// A communicator is about to be ended while threads may be held in calls on it.
#pragma once

#include "preload/directory.h"

namespace falcon::preload {

/// Before the vendor ends it: who is held in a call on it is let go and makes no call, and who is held at the end of a
/// group with one has the vendor drop the group, which is waited for. `communicator` is no longer in `directory`.
void letGoOfCallsOn(WatchedCommunicator& communicator, Directory& directory);

}  // namespace falcon::preload
