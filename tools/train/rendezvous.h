// How the ranks get NCCL's unique id: rank 0 hands it out over TCP at MASTER_ADDR:MASTER_PORT.
#pragma once

#include <chrono>
#include <span>

#include "train/options.h"

namespace falcon::train {

/// On rank 0 `token` is what all others shall have; on the others it is set. Returns when this rank's part is done.
/// Throws std::runtime_error when a rank has not come, or cannot be reached, within `limit`.
void shareToken(const RankInJob& inJob, std::span<char> token, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace falcon::train
