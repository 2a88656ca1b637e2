// The functions of a vendor's library that the front stands before, and the questions that its core may ask.
#pragma once

#include "front/core_functions.h"
#include "front/interposed.h"

namespace falcon::front {

// clang-format off
/// X(name without "nccl")
#define FALCON_FRONT_FUNCTIONS(X)                                                                                \
  X(GetUniqueId) X(CommInitRank) X(CommInitRankConfig) X(CommInitRankScalable) X(CommInitAll) X(CommSplit)      \
  X(CommShrink) X(CommGetUniqueId) X(CommGrow) X(CommDestroy) X(CommAbort) X(GroupStart) X(GroupEnd) X(GroupSimulateEnd)                        \
  X(AllReduce) X(Broadcast) X(Bcast) X(Reduce) X(AllGather) X(ReduceScatter) X(AlltoAll) X(Gather) X(Scatter)    \
  X(Send) X(Recv)                                                                                                \
  X(AllReduceConfig) X(BroadcastConfig) X(ReduceConfig) X(AllGatherConfig) X(ReduceScatterConfig)                \
  X(AlltoAllConfig) X(GatherConfig) X(ScatterConfig)
/// X(name without "ncclFalcon"): those of nccl_falcon.h, which only a library of ours has.
#define FALCON_EXTENSION_FUNCTIONS(X)                                                                            \
  X(GetVersion) X(RegisterLayout) X(IterationBegin) X(StreamCreate) X(StreamSynchronize) X(StreamQuery)          \
  X(StreamCallback) X(StreamDestroy) X(RedOpCreateBitwise) X(RangeBegin) X(RangeEnd) X(IterationWork)            \
  X(Suspend) X(Resume) X(TrapCallbackAdd) X(TrapCallbackRemove) X(RegisterState) X(UnregisterState)            \
  X(Checkpoint) X(CheckpointSynchronize) X(Restore) X(Wanted) X(Restart) X(RegisterReshape) X(Reshape) X(Role) X(Roles) \
  X(GetHostUniqueId) X(IterationCallback)
// clang-format on

/// Null where the library lacks it.
struct VendorTable {
#define FALCON_MEMBER(name) decltype(&::nccl##name) name;
  FALCON_FRONT_FUNCTIONS(FALCON_MEMBER)
#undef FALCON_MEMBER
  VendorQuestions questions;
};

/// The same of our own libnccl.so.2, which may be of another version.
struct ExtensionTable {
#define FALCON_MEMBER(name) decltype(&::ncclFalcon##name) name;
  FALCON_EXTENSION_FUNCTIONS(FALCON_MEMBER)
#undef FALCON_MEMBER
};

}  // namespace falcon::front
