// One part of a checkpoint: written, found, verified, loaded and removed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reshape/checkpoint_format.h"
#include "reshape/registered_state.h"
#include "reshape/storage.h"

namespace falcon::reshape {

/// A part as it was at an iteration's end, copied, so that the framework may go on.
struct StagedPart {
  std::string name;
  Manifest manifest;  ///< its checksums are set when it is written
  std::unique_ptr<std::byte[]> content;
  std::size_t capacity = 0;
};

/// Copies the buffers into `staged`, whose memory is used again where it is large enough. Throws std::bad_alloc.
void stage(std::span<const StateBuffer> buffers, const Place& place, const Found& as, std::string name,
           StagedPart& staged);

/// State first, manifest last, each under a draft's name until all of it is on the storage: whatever the writer's last
/// step was, there is the whole part with this iteration or none. Afterwards the names survive the machine too.
Status write(Storage& storage, const std::string& folder, StagedPart& staged);

/// The iterations of which there is such a part, the newest first: its manifest is whole and of this job's shape, has
/// these buffers, and the state has its length. The state's bytes are not looked at. Errors: the folder cannot be read.
/// @param refused  told in words why a part that is there does not count
Result<std::vector<Found>> iterationsOf(
    Storage& storage, const std::string& folder, const std::string& part, std::span<const StateBuffer> buffers,
    const Place& place, const std::function<void(const std::string&)>& refused = [](const std::string&) {});

/// Whether there is a manifest of it.
bool hasPart(Storage& storage, const std::string& folder, std::uint64_t iteration, const std::string& part);

/// Reads all of the part's state and compares its checksums; nothing is changed.
Status verify(Storage& storage, const std::string& folder, std::uint64_t iteration, const std::string& part);

/// Reads it into the buffers, and compares again. After an error their content is undefined.
Status load(Storage& storage, const std::string& folder, std::uint64_t iteration, const std::string& part,
            std::span<const StateBuffer> buffers);

/// Removes what of this part is older than the newest of `complete` but for the `keep` newest that are complete on all
/// ranks: those of `complete`, ascending, and where these are fewer, the newest older ones that are whole here. Nothing
/// where there are none. A folder goes with its last part. What cannot be removed stays.
void prune(Storage& storage, const std::string& folder, const std::string& part,
           const std::vector<std::uint64_t>& complete, int keep);

}  // namespace falcon::reshape
