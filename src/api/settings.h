// ncclConfig_t, read defensively: programs built against older headers pass shorter ones.
#pragma once

#include "api/exports.h"
#include "base/result.h"
#include "gpu/vendor_communicator.h"

namespace falcon::api {

/// What a communicator was configured with.
struct Settings {
  bool blocking = true;
  gpu::VendorConfig vendor;
};

/// `config` may be null: defaults. Fields newer than the caller's version take defaults.
/// NCCL_COMM_BLOCKING comes before both. Errors: invalidArgument.
Result<Settings> readSettings(const char* function, const ncclConfig_t* config);

}  // namespace falcon::api
