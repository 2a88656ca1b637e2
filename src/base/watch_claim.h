// One NCCL Falcon watches in a process, though both shapes of it may be there: the preload library, which was loaded
// first then, keeps who it is. Its front has these functions; libnccl.so.2 looks them up.
#pragma once

namespace falcon::watch_claim {

enum class Answer : int {
  yours,     ///< who asks watches: nobody did before
  handOver,  ///< the preload library does, and is of the same build: calls of the vendor's go to its functions
  others,    ///< the preload library does, and is of another build
};

/// @param build  FALCON_BUILD of libnccl.so.2, which asks before it begins to watch
using Claim = Answer (*)(const char* build);
constexpr const char* claimName = "ncclFalconClaimWatch";

/// From now on calls that come from the object at `code` are for the library that has `vendorsFunction`.
using HandOver = void (*)(const void* code, void* vendorsFunction);
constexpr const char* handOverName = "ncclFalconHandOver";

}  // namespace falcon::watch_claim
