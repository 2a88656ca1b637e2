// The id of communicators of host memory, in whatever library of NCCL's ABI the program runs on.
#pragma once

#include "nccl_falcon.h"

#pragma weak ncclFalconGetHostUniqueId

namespace falcon::tools {

/// As ncclFalconGetHostUniqueId; in a library that lacks it as ncclGetUniqueId.
inline ncclResult_t hostUniqueId(ncclUniqueId& id) {
  return ncclFalconGetHostUniqueId ? ncclFalconGetHostUniqueId(&id) : ncclGetUniqueId(&id);
}

}  // namespace falcon::tools
