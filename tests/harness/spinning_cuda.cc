// Stands for the CUDA driver (libcuda.so.1) beside spinning_vendor.cc: one device, and events of its streams.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace {

/// Of the stand-in for the vendor's library, which has the streams.
template <class Function>
Function* ofVendor(const char* name) {
  static void* const library = dlopen(std::getenv("NCCL_FALCON_VENDOR_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// On a stream of the vendor's, or on one that was made here, where nothing ever runs.
struct Event {
  void* mark = nullptr;
  std::int64_t recorded = 0;

  std::int64_t nanoseconds() const {
    return mark ? ofVendor<std::int64_t(void*)>("spinningMarkNanoseconds")(mark) : recorded;
  }
};

int idleStream = 0;
constexpr int success = 0, notReady = 600;

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int cuInit(unsigned) {
  return success;
}
FAKE int cuDeviceGetCount(int* count) {
  *count = 1;
  return success;
}
FAKE int cuDeviceGet(int* device, int) {
  *device = 0;
  return success;
}
FAKE int cuPointerGetAttribute(void*, int, std::uintptr_t) {
  constexpr int invalidValue = 1;  // ordinary memory
  return invalidValue;
}
FAKE int cuCtxGetCurrent(void** current) {
  *current = nullptr;
  return success;
}
FAKE int cuCtxSetCurrent(void*) {
  return success;
}
FAKE int cuDevicePrimaryCtxRetain(void** made, int) {
  *made = nullptr;
  return success;
}
FAKE int cuCtxPushCurrent_v2(void*) {
  return success;
}
FAKE int cuCtxPopCurrent_v2(void** context) {
  *context = nullptr;
  return success;
}
FAKE int cuStreamGetCtx(void*, void** context) {
  *context = nullptr;
  return success;
}
FAKE int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return success;
}
FAKE int cuThreadExchangeStreamCaptureMode(int*) {
  return success;
}
FAKE int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return success;
}
FAKE int cuEventDestroy_v2(void* event) {
  auto* const owned = static_cast<Event*>(event);
  if (owned->mark) ofVendor<void(void*)>("spinningMarkFree")(owned->mark);
  delete owned;
  return success;
}
FAKE int cuEventRecord(void* event, void* stream) {
  auto& its = *static_cast<Event*>(event);
  if (its.mark) ofVendor<void(void*)>("spinningMarkFree")(its.mark);
  its.mark = stream == &idleStream ? nullptr : ofVendor<void*(void*)>("spinningMark")(stream);
  its.recorded = std::chrono::steady_clock::now().time_since_epoch().count();
  return success;
}
FAKE int cuEventQuery(void* event) {
  void* const mark = static_cast<Event*>(event)->mark;
  return !mark || ofVendor<bool(void*)>("spinningMarkReached")(mark) ? success : notReady;
}
FAKE int cuEventElapsedTime(float* milliseconds, void* first, void* second) {
  const auto at = [](void* event) { return static_cast<Event*>(event)->nanoseconds(); };
  *milliseconds = static_cast<float>(at(second) - at(first)) * 1e-6F;
  return success;
}
FAKE int cuStreamCreate(void** stream, unsigned) {
  *stream = &idleStream;
  return success;
}
