// Our nccl.h under the CUDA toolkit's nccl_device.h, which completes the opaque types and declares the device functions
// again: a declaration that differs from ours does not compile.
#include "nccl.h"

#include <nccl_device.h>

static_assert(sizeof(ncclTeam_t) == 3 * sizeof(int));
