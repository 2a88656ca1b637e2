// Checkpoints and restarts of a vendor's communicator, over Falcon's network among its ranks.
#pragma once

#include <cstdint>

#include "preload/directory.h"

namespace falcon::preload {

// What all ranks do together, in turn with what that network is otherwise used for. Each waits until Falcon knows the
// communicator. Errors (invalidUsage): it is not watched; and those of control::Checkpointing. Outputs are set only on
// success.

Status takeCheckpoint(const Directory::Use& use, std::uint64_t iteration, const char* folder);
Status restoreCheckpoint(const Directory::Use& use, const char* folder, std::uint64_t& iteration);
Status requestRestart(const Directory::Use& use, int& exitCode);

}  // namespace falcon::preload
