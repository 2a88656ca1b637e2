// Falcon's part of a unique id of the vendor's. The vendor writes the first 40 bytes and leaves the rest zero; all
// ranks get all 128, and hand them to the vendor as they are.
#pragma once

#include <optional>

#include "bootstrap/unique_id.h"
#include "nccl.h"

namespace falcon::gpu {

/// Whether the bytes that the vendor leaves to nobody are free in `id`.
bool hasRoom(const ncclUniqueId& id);
/// False, and unchanged: it does not fit.
bool write(const bootstrap::UniqueId& ours, ncclUniqueId& id);
/// Makes a rendezvous in this process and writes the way to it. Nothing, which is said: there is no room, or none can
/// be had; then communicators of this id are not watched.
std::optional<bootstrap::UniqueId> furnish(ncclUniqueId& id);
/// Nothing: the id bears none of ours, since Falcon is off where it was made, or another library made it.
std::optional<bootstrap::UniqueId> read(const ncclUniqueId& id);

}  // namespace falcon::gpu
