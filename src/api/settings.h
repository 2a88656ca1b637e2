// ncclConfig_t, read defensively: programs built against older headers pass shorter ones.
#pragma once

#include "api/exports.h"
#include "base/result.h"
#include "collectives/host_communicator.h"
#include "gpu/vendor_communicator.h"

namespace falcon::api {

/// What a communicator was configured with.
struct Settings {
  bool blocking = true;
  gpu::VendorConfig vendor;
  bool isParents = false;  ///< it was given none of its own

  /// For the vendor: null says that it is the parent's.
  const gpu::VendorConfig* ofChild() const { return isParents ? nullptr : &vendor; }
  /// For the host engine, to which a CTA is a channel.
  collectives::CommunicatorWish wish() const;
};

/// `config` may be null: defaults. Fields newer than the caller's version take defaults.
/// NCCL_COMM_BLOCKING comes before both. Errors: invalidArgument.
Result<Settings> readSettings(const char* function, const ncclConfig_t* config);
/// The same for a communicator that is made of one with the settings `parent`, which it has where `config` is null.
Result<Settings> readChildSettings(const char* function, const ncclConfig_t* config, const Settings& parent);

}  // namespace falcon::api
