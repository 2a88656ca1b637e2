// The layouts and callbacks that programs have registered (nccl_falcon.h), by communicator: without Falcon, too, a rank
// is told its share, and its iterations' ends.
#pragma once

#include "front/interposed.h"

#include "base/iteration_ends.h"

namespace falcon::front {

using Iterations = IterationEnds<ncclFalconIterationEnd_t>;

/// Thread-safe. False: there is no room, which is for 256 communicators.
bool keepLayout(ncclComm_t communicator, const ncclFalconLayout_t& layout);
/// False: none was registered.
bool layoutOf(ncclComm_t communicator, ncclFalconLayout_t& layout);
/// As keepLayout(); null removes the callback, which needs no room.
bool keepCallback(ncclComm_t communicator, Iterations::Callback callback, void* context, unsigned int flags);
/// The communicator's, for a moment: `work` calls nobody. False: it has none.
bool withIterations(ncclComm_t communicator, void (*work)(Iterations& iterations, void* with), void* with);
/// The communicator ends. One load where nothing was ever kept.
void forgetLayout(ncclComm_t communicator);

}  // namespace falcon::front
