// Which of the two shapes of NCCL Falcon watches in this process (base/watch_claim.h).
#pragma once

#include "front/core_functions.h"

namespace falcon::front {

/// Whether libnccl-falcon-core.so may watch: libnccl.so.2 does not do so already.
bool claimForCore();

/// There is no such core after all.
void letGoOfClaim();

/// Where libnccl.so.2 watches: the core in it. Null: it is of another build, which is said.
const CoreFunctions* coreOfLibrary();

/// The library of NCCL that the object loaded at `base` hands its calls over for: one of its functions. Null: none.
void* handedOverBy(const void* base);

}  // namespace falcon::front
