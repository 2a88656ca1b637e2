// The core of the preload library, in libnccl-falcon-core.so and in libnccl.so.2.
#pragma once

#include "front/core_functions.h"

namespace falcon::preload {

/// The same for all who ask. Null: `build` is not this build's, or Falcon is off. Nobody waits for another one in it.
const front::CoreFunctions* coreFunctions(const char* build) noexcept;

}  // namespace falcon::preload
