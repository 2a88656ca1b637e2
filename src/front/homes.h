// Which library of NCCL has made a communicator. A call goes to the library that its caller is linked to; but where a
// function ends in the call, compilers make that a jump, and the caller that is seen is the function's own. With one
// library that does no harm; with several another one would get what it has not made.
#pragma once

#include "front/route.h"

namespace falcon::front {

/// Thread-safe and lock-free. Of what there is no room for (4,096 communicators) the caller decides.
void keepHome(ncclComm_t communicator, const Route& made);
/// The communicator ends: its address may come again at once.
void forgetHome(ncclComm_t communicator);
/// Where there are several libraries.
const Route& homeInTable(ncclComm_t communicator, const Route& byCaller);

/// The way of a call with `communicator` from where `byCaller` is the way. One load where there is one library.
inline const Route& homeOf(ncclComm_t communicator, const Route& byCaller) {
  if (!severalVendors.load()) [[likely]]
    return byCaller;
  return homeInTable(communicator, byCaller);
}

}  // namespace falcon::front
