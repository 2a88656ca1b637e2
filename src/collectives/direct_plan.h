// Whether a call runs without connections, and how.
#pragma once

#include <optional>

#include "collectives/call_plan.h"
#include "collectives/direct_runner.h"

namespace falcon::collectives {

/// Null for messages, for empty calls, and where connections are needed or better. The same on all ranks.
std::optional<DirectRunner> planDirect(DirectMember& member, const MemberShape& shape, const Call& call);

/// The same by a given algorithm. Null where that needs to read memory and the ranks do not.
std::optional<DirectRunner> planDirect(DirectMember& member, const MemberShape& shape, const Call& call,
                                       const DirectAlgorithm& algorithm);

}  // namespace falcon::collectives
