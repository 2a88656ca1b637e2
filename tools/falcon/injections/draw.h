// What is injected, drawn from a seed. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demo/schedule.h"

namespace falcon::injections {

/// One or two at the same time, or none: then nobody may be named. Without times: each lasts until it was named.
using Drawn = std::vector<demo::Injection>;

/// The `number`th of a seed, whatever was drawn before: a run that goes on later draws the same.
Drawn draw(std::uint64_t seed, int number, const demo::JobShape& shape);

/// "none", "rank 3", "link 0 -> 2 and rank 3".
std::string nameOf(const std::vector<Culprit>& culprits);
std::vector<Culprit> culpritsOf(const Drawn& drawn);

}  // namespace falcon::injections
