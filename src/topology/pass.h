// A round of link tests that may run at the same time.
#pragma once

#include <vector>

#include "base/types.h"

namespace falcon::topology {

/// Directed links of which no two share a rank.
using Pass = std::vector<Link>;

}  // namespace falcon::topology
