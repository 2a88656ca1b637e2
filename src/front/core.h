// The core of the preload library, which is loaded only where Falcon is on.
#pragma once

#include "front/core_functions.h"

namespace falcon::front {

/// Null: NCCL_FALCON is not 1, or the core cannot be loaded, which is said once. Loads it at the first call; in a
/// child that was forked while its parent loaded it there is none.
const CoreFunctions* core();

}  // namespace falcon::front
