// What stands first in an exported function that some release of the vendor's library calls by its name itself
// (tests/abi/vendor says which): such a call goes straight on to that library.
#pragma once

#include "gpu/vendor_code.h"

/// The return address has to be taken in the exported function itself.
#define FALCON_LET_VENDORS_OWN_PASS(name, ...)                                                                       \
  if (void* const caller = falcon::gpu::vendorCalling(__builtin_return_address(0))) [[unlikely]] {                   \
    static constinit falcon::gpu::FunctionByName theirs("p" #name);                                                  \
    if (void* const function = theirs.in(caller)) return reinterpret_cast<decltype(&::name)>(function)(__VA_ARGS__); \
  }
