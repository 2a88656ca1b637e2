// Who waits for whom, from when ranks entered the same call.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "instrument/timeline.h"

namespace falcon::support {

/// Job ranks of a communicator's members, by rank.
using MembersOf = std::map<CommunicatorId, std::vector<Rank>>;

/// Share of the time, 0 to 1, that the first rank stood in a call before the second had entered it.
/// A collective waits for its last rank, a receive for its send, a send that is still in progress for its receive.
/// Calls of which not all members' entries are there are left out: nothing is guessed.
/// @param timeline  with start < end
std::map<std::pair<Rank, Rank>, double> waitsOf(const instrument::JobTimeline& timeline, const MembersOf& members);

}  // namespace falcon::support
