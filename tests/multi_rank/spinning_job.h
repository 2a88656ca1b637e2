// Ranks of a job of the vendor's engine, which the stand-in for its library runs.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "harness/fakes.h"
#include "multi_rank/trap_job.h"

namespace falcon::test {

#define OR_SAY(call)                                                                                \
  do {                                                                                              \
    if (const ncclResult_t result_ = (call); result_ != ncclSuccess) return saying(#call, result_); \
  } while (false)

/// The device's streams.
class Streams {
 public:
  Streams() : library_(dlopen(FALCON_SPINNING_VENDOR, RTLD_NOW | RTLD_LOCAL)) {}
  ~Streams() {
    for (void* stream : made_) harness::functionOf<void(void*)>(library_, "spinningStreamDestroy")(stream);
  }
  Streams(const Streams&) = delete;
  void* create() { return made_.emplace_back(harness::functionOf<void*()>(library_, "spinningStreamCreate")()); }
  /// What is enqueued on it from now on does not begin until it is let go.
  void block(void* stream, bool blocked) {
    harness::functionOf<void(void*, bool)>(library_, "spinningStreamBlock")(stream, blocked);
  }
  void synchronize(void* stream) { harness::functionOf<void(void*)>(library_, "spinningStreamSynchronize")(stream); }

 private:
  void* library_;
  std::vector<void*> made_;
};

inline cudaStream_t asCuda(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

inline void useSpinningVendor() {
  setenv("NCCL_FALCON_ENGINE", "vendor", 1);
  setenv("NCCL_FALCON_VENDOR_LIBRARY", FALCON_SPINNING_VENDOR, 1);
  // The library finds it as it finds the driver: loaded, by its soname.
  if (!dlopen(FALCON_SPINNING_CUDA, RTLD_NOW | RTLD_LOCAL)) std::abort();
}

}  // namespace falcon::test
