// Chrome trace JSON (the "JSON Object Format" of the Trace Event Format).
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "instrument/rank_snapshot.h"

namespace falcon::trace {

/// pid: the rank in the job; tid: from 1, a communicator of it with its calls, then what each channel of a communicator
/// sends and receives (names say which). Times are in microseconds from the first call on. Ranks of one host have one
/// clock; hosts are aligned by their wall clocks.
///
/// A slice is a call; inside of it, where all members are on one host and still have the call in their logs, a slice
/// `waiting` goes until the last member came, and names it. A flow goes from each Send to its Recv. A call that was in
/// flight ends where the log was read. Channels have slices for the time that per-channel timing was on: with the
/// baseline, after an onset.
nlohmann::json chromeTrace(std::span<const instrument::RankSnapshot> ranks);

}  // namespace falcon::trace
