// Stands for the CUDA driver (libcuda.so.1) beside spinning_vendor.cc: one device, and events of its streams.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

namespace {

/// Of the stand-in for the vendor's library, which has the streams.
template <class Function>
Function* ofVendor(const char* name) {
  static void* const library = dlopen(std::getenv("NCCL_FALCON_VENDOR_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct Event {
  void* mark = nullptr;
};

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
  auto& mark = static_cast<Event*>(event)->mark;
  if (mark) ofVendor<void(void*)>("spinningMarkFree")(mark);
  mark = ofVendor<void*(void*)>("spinningMark")(stream);
  return success;
}
FAKE int cuEventQuery(void* event) {
  return ofVendor<bool(void*)>("spinningMarkReached")(static_cast<Event*>(event)->mark) ? success : notReady;
}
