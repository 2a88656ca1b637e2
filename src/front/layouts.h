// The layouts that programs have registered (nccl_falcon.h), by communicator: without Falcon, too, a rank is told its
// share.
#pragma once

#include "front/interposed.h"

namespace falcon::front {

/// Thread-safe. False: there is no room, which is for 256 communicators.
bool keepLayout(ncclComm_t communicator, const ncclFalconLayout_t& layout);
/// False: none was registered.
bool layoutOf(ncclComm_t communicator, ncclFalconLayout_t& layout);
/// The communicator ends. One load where nothing was ever kept.
void forgetLayout(ncclComm_t communicator);

}  // namespace falcon::front
