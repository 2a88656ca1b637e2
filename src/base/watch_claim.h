// One NCCL Falcon watches in a process, though both shapes of it may be there: the preload library, which was loaded
// first then, keeps who it is. Its front has these functions; libnccl.so.2 looks them up.
#pragma once

namespace falcon::watch_claim {

enum class Answer : int {
  yours,     ///< who asks watches: nobody did before
  handOver,  ///< the preload library does, and is of the same build: calls of the vendor's go to its functions
  others,    ///< the preload library does, and is of another build; or another copy of libnccl.so.2
};

/// What the preload library's core has for its front (front/core_functions.h); libnccl.so.2 has that inside, too.
using GetCore = const void* (*)(const char* build);

/// @param build  FALCON_BUILD of libnccl.so.2, which asks before it begins to watch
/// @param core   where it watches and is of the same build, its front's calls go there: one job, one watcher
using Claim = Answer (*)(const char* build, GetCore core);
constexpr const char* claimName = "ncclFalconClaimWatch";

/// From now on calls that come from the object at `code` are for the library that has `vendorsFunction`. False: there
/// is no room for another one.
using HandOver = bool (*)(const void* code, void* vendorsFunction);
constexpr const char* handOverName = "ncclFalconHandOver";

}  // namespace falcon::watch_claim
