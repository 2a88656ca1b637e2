// What a program says of one collective in its ncclCollConfig_t, read defensively.
#pragma once

#include "base/call.h"
#include "base/result.h"
#include "nccl.h"

namespace falcon::instrument {

/// Whether it was started from NCCL_COLLCONFIG_INITIALIZER, of 2.31 or later.
bool isInitialized(const ncclCollConfig_t& config);

/// So long is a list of extensions at most; one that is longer has no end.
inline constexpr int mostExtensions = 64;

/// userProfilerTag, and our options (nccl_falcon.h) among the extensions; others mean nothing. Allocates nothing.
/// Errors (invalidArgument, not logged): an option of ours has a value that cannot be, or is there twice; the list has
/// no end.
Result<CallLabels> labelsOf(const ncclCollConfig_t& config);

}  // namespace falcon::instrument
