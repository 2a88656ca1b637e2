// The functions of a vendor's library that the front stands before, and the questions that its core may ask.
#pragma once

#include "front/core_functions.h"
#include "front/interposed.h"

namespace falcon::front {

// clang-format off
/// X(name without "nccl")
#define FALCON_FRONT_FUNCTIONS(X)                                                                                \
  X(GetUniqueId) X(CommInitRank) X(CommInitRankConfig) X(CommInitRankScalable) X(CommInitAll) X(CommSplit)      \
  X(CommShrink) X(CommDestroy) X(CommAbort) X(GroupStart) X(GroupEnd) X(GroupSimulateEnd)                        \
  X(AllReduce) X(Broadcast) X(Bcast) X(Reduce) X(AllGather) X(ReduceScatter) X(AlltoAll) X(Gather) X(Scatter)    \
  X(Send) X(Recv)                                                                                                \
  X(AllReduceConfig) X(BroadcastConfig) X(ReduceConfig) X(AllGatherConfig) X(ReduceScatterConfig)                \
  X(AlltoAllConfig) X(GatherConfig) X(ScatterConfig)
// clang-format on

/// Null where the library lacks it.
struct VendorTable {
#define FALCON_MEMBER(name) decltype(&::nccl##name) name;
  FALCON_FRONT_FUNCTIONS(FALCON_MEMBER)
#undef FALCON_MEMBER
  VendorQuestions questions;
};

}  // namespace falcon::front
