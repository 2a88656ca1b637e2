// ncclCollConfig_t, read defensively: what a program asks for one collective.
#pragma once

#include <memory>

#include "api/exports.h"
#include "base/result.h"

namespace falcon::api {

/// A copy of the caller's structure, as long as that is; its texts stay the caller's. Null: it gave none.
using CallSettings = std::shared_ptr<const ncclCollConfig_t>;

/// Errors: invalidArgument (it was not initialized, or a value cannot be).
Result<CallSettings> readCallSettings(const char* function, const ncclCollConfig_t* config);

/// Whether the host engine can do what is asked: limits of device resources mean nothing to it, but a choice of
/// algorithm that must not be ignored is refused (invalidUsage).
Status checkForHost(const char* function, const ncclCollConfig_t& config);

}  // namespace falcon::api
