// A step over a communicator's network is the same one on all ranks: one of them may lack a step that it was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace falcon::control {

/// Everyone's bytes, by rank.
using Gather = std::function<Result<std::vector<std::string>>(std::string_view mine)>;

/// Every rank has reached step `number`. Collective over all ranks, each with the step that it is at. Errors: those of
/// `gather`; system: a rank is past this step, because it had no thread or no memory for it. That rank waits here until
/// the others have come to its own.
Status agreeOnStep(std::uint64_t number, const Gather& gather);

}  // namespace falcon::control
