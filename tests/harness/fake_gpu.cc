// Stands for libnccl_falcon_gpu.so in tests: two devices, of which the second is slower and knows no f8; a third fails.
#include <cstdio>
#include <cstring>

#include "validate/gpu_module/gpu_module.h"

namespace {

int countDevices(int* count, char*, size_t) {
  *count = 2;
  return 0;
}

int measure(int device, double seconds, FalconGpuFigures* figures, char* why, size_t room) {
  if (device > 1) {
    std::snprintf(why, room, "invalid device ordinal");
    return 1;
  }
  *figures = {};
  std::strcpy(figures->device, "Fake 9000");
  std::snprintf(figures->bus, sizeof figures->bus, "0000:0%d:00.0", device < 0 ? 7 : device);
  for (double& rate : figures->operationsPerSecond) rate = device == 1 ? 1e12 : 2e12;
  if (device == 1) figures->operationsPerSecond[falconGpuFloat8] = 0;
  figures->copyRate = seconds * 1e12;
  figures->toDeviceRate = 2e10;
  figures->fromDeviceRate = 3e10;
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const FalconGpuModule* falconGpuModule() {
  static const FalconGpuModule module = {falconGpuModuleVersion, "a fake", countDevices, measure};
  return &module;
}
