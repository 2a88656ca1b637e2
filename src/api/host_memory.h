// ncclMemAlloc without a device: pages of this process.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace falcon::api {

/// Whole pages, zeroed; from 2 MiB on aligned to and advised as huge pages. Errors (system): no memory.
Result<void*> allocateHostMemory(std::size_t bytes);
/// False: allocateHostMemory() never gave this address, or it was freed.
bool freeHostMemory(void* address);

}  // namespace falcon::api
