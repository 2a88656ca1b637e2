// Stands for NVML (libnvidia-ml.so.1) in tests: one device at 0000:17:00.0, at its power limit and hot, which reports
// an XID once. It lacks what old drivers lack: the newer name of the throttle reasons.
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
int device, events;
int started = 0;
bool registered = false, told = false;
constexpr int notFound = 6, notSupported = 3, timeout = 10;
}  // namespace

FAKE int nvmlInit_v2() {
  ++started;
  return 0;
}
FAKE int nvmlShutdown() {
  --started;
  return 0;
}
/// Times that it was initialised and not shut down.
FAKE int fakeNvmlStarted() {
  return started;
}
FAKE const char* nvmlErrorString(int status) {
  return status == notFound ? "Not Found" : "another error";
}
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** found) {
  if (std::strcmp(bus, "0000:17:00.0") != 0) return notFound;
  *found = &device;
  return 0;
}
FAKE int nvmlDeviceGetClockInfo(void*, unsigned kind, unsigned* megahertz) {
  *megahertz = kind == 1 ? 1200 : 1;
  return 0;
}
FAKE int nvmlDeviceGetMaxClockInfo(void*, unsigned kind, unsigned* megahertz) {
  *megahertz = kind == 1 ? 1980 : 1;
  return 0;
}
FAKE int nvmlDeviceGetTemperature(void*, unsigned, unsigned* celsius) {
  *celsius = 88;
  return 0;
}
FAKE int nvmlDeviceGetTemperatureThreshold(void*, unsigned kind, unsigned* celsius) {
  *celsius = kind == 1 ? 87 : 92;
  return 0;
}
FAKE int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 699'500;
  return 0;
}
FAKE int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned*) {
  return notSupported;
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x04 | 0x40 | 0x01;
  return 0;
}
struct Violation {
  unsigned long long referenceTime, violationTime;
};
FAKE int nvmlDeviceGetViolationStatus(void*, int policy, Violation* violation) {
  *violation = {1, policy == 0 ? 5'000'000ULL : 7'000'000ULL};
  return 0;
}
FAKE int nvmlDeviceGetTotalEccErrors(void*, unsigned type, unsigned counter, unsigned long long* count) {
  *count = type == 1 && counter == 0 ? 3 : 1000;
  return 0;
}
FAKE int nvmlEventSetCreate(void** set) {
  *set = &events;
  return 0;
}
FAKE int nvmlDeviceRegisterEvents(void*, unsigned long long types, void* set) {
  registered = types == 8 && set == &events;
  return registered ? 0 : notSupported;
}
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpuInstance, computeInstance;
};
FAKE int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
  if (!registered || told) return timeout;
  told = true;
  *event = {&device, 8, 79, 0, 0};
  return 0;
}
FAKE int nvmlEventSetFree(void*) {
  return 0;
}
