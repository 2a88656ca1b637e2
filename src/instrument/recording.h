// Copies of call logs that outlive their job: `falcon record` writes them, `falcon trace` reads them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "instrument/rank_snapshot.h"

namespace falcon::instrument {

/// A call log with what `view` holds: reading it gives `view` again, with all of its records.
std::string imageOf(const CallLogView& view);

/// A recording, byte for byte as docs/call-log.md says.
std::string encodeRecording(std::span<const RankSnapshot> ranks);
/// What can be read of a recording.
struct Recording {
  std::vector<RankSnapshot> ranks;  ///< the whole ones
  std::string lost;                 ///< what is not among them, in words that name the file; empty: nothing
};

/// A recording that was cut (a full disk, a recorder that was killed) or damaged still gives all ranks that are whole.
/// @param bytes  aligned to 8
/// Errors (invalidArgument): not a recording, another version, or no rank of it is whole.
Result<Recording> decodeRecording(std::span<const std::byte> bytes, const std::string& name);

}  // namespace falcon::instrument
