// Where a call goes on: to the NCCL that its caller would have called without us.
#pragma once

#include "front/core_functions.h"
#include "front/vendor_table.h"

namespace falcon::front {

/// The way of all calls from one place in the program. Never freed.
struct Route {
  const VendorTable* vendor;
  /// Null: only forwarded. Falcon is off, the caller is the vendor's library itself, or what is called is NCCL Falcon.
  const CoreFunctions* core;
};

/// The way from `caller`, a return address. Lock-free, about 2 ns from the second call on; safe in a forked child.
/// A process with several libraries of NCCL: each caller gets that which it is linked to. Who asks calls on, and does
/// not jump: else a function of the vendor's that jumps to one of ours would be taken for the application.
const Route& routeFrom(const void* caller);

}  // namespace falcon::front
