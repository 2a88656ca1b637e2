// Stands for the CUDA driver (libcuda.so.1) in tests: one device, and memory is a device's where a test says so.
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {
std::atomic<std::uintptr_t> begin{0}, end{0};
std::atomic<void*> context{nullptr};
}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

/// From now on [start, start + size) is device memory, and nothing else is.
FAKE void fakeCudaDeviceMemory(void* start, std::size_t size) {
  begin = reinterpret_cast<std::uintptr_t>(start);
  end = begin + size;
}

FAKE int cuInit(unsigned) {
  return 0;
}
FAKE int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
FAKE int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? 0 : 101;
}
FAKE int cuPointerGetAttribute(void* value, int attribute, std::uintptr_t pointer) {
  constexpr int invalidValue = 1, memoryType = 2, isManaged = 8;
  if (pointer < begin || pointer >= end) return invalidValue;
  if (attribute == memoryType) *static_cast<unsigned*>(value) = 2;
  if (attribute == isManaged) *static_cast<unsigned*>(value) = 0;
  return 0;
}
FAKE int cuCtxGetCurrent(void** current) {
  *current = context;
  return 0;
}
FAKE int cuCtxSetCurrent(void* wanted) {
  context = wanted;
  return 0;
}
FAKE int cuDevicePrimaryCtxRetain(void** made, int device) {
  *made = reinterpret_cast<void*>(static_cast<std::uintptr_t>(0x1000 + device));
  return 0;
}
