// Which of the two shapes of NCCL Falcon watches in this process (base/watch_claim.h).
#pragma once

namespace falcon::front {

/// Whether the core may watch: libnccl.so.2 does not do so already. Else that is said.
bool claimForCore();

/// The library of NCCL that the object loaded at `base` hands its calls over for: one of its functions. Null: none.
void* handedOverBy(const void* base);

}  // namespace falcon::front
