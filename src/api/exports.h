// nccl.h and nccl_falcon.h for the files that define their functions: to be included before anything else, since the
// first declaration decides whether a name can leave the library.
#pragma once

#ifdef NCCL_H_
#error "api/exports.h comes first"
#endif
#pragma GCC visibility push(default)
#include "nccl_falcon.h"
#pragma GCC visibility pop

/// Defines the weak twin ncclX of the strong pncclX that stands before it: profilers replace the one and call the
/// other.
#define FALCON_WEAK_TWIN(name) \
  extern "C" __attribute__((weak, alias("p" #name), visibility("default"))) decltype(p##name) name
