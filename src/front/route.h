// Where a call goes on: to the NCCL that its caller would have called without us.
#pragma once

#include "front/atomics.h"
#include "front/core_functions.h"
#include "front/vendor_table.h"

namespace falcon::front {

/// The way of all calls from one place in the program. Never freed.
struct Route {
  const VendorTable* vendor;
  /// Null: only forwarded. Falcon is off, the caller is the vendor's library itself, or what is called is NCCL Falcon.
  const CoreFunctions* core;
  /// Not null: what is called is NCCL Falcon, whose functions of nccl_falcon.h these are.
  const ExtensionTable* own;
  /// The way of the communicators that this library has made, whoever calls with them.
  const Route* home;
};

/// The way from `caller`, a return address. Lock-free, about 2 ns from the second call on; safe in a forked child.
/// A process with several libraries of NCCL: each caller gets that which it is linked to. Who asks calls on, and does
/// not jump: else a function of the vendor's that jumps to one of ours would be taken for the application.
const Route& routeFrom(const void* caller);

/// The same for a function of nccl_falcon.h, which may be called before any library of NCCL is loaded: then there is no
/// vendor's function in the route's table.
Route extensionRouteFrom(const void* caller);

/// Where the object that has `code` is loaded; null: no object has it.
const void* baseOf(const void* code);

/// A process has several libraries of NCCL, as far as calls have told.
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): constant
extern constinit Atomic<bool> severalVendors;

}  // namespace falcon::front
