// What libnccl_falcon_gpu.so offers: one table of functions, in plain C.
#ifndef FALCON_GPU_MODULE_H
#define FALCON_GPU_MODULE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { falconGpuModuleVersion = 1 };

enum FalconGpuProduct {
  falconGpuFloat32,
  falconGpuTensorFloat32,
  falconGpuFloat16,
  falconGpuBfloat16,
  falconGpuFloat8, /* e4m3 */
  falconGpuProducts
};

/* 0 where the device cannot do it. */
struct FalconGpuFigures {
  char device[64]; /* "NVIDIA H200" */
  char bus[32];    /* PCI address, as "0000:17:00.0" */
  double operationsPerSecond[falconGpuProducts];
  double copyRate;       /* bytes per second that a copy within the device's memory reads and writes */
  double toDeviceRate;   /* bytes per second, from pinned host memory */
  double fromDeviceRate; /* bytes per second, to pinned host memory */
};

/* Functions return 0, or write why they failed, with an end, into `why`, and return another number. Thread-safe. */
struct FalconGpuModule {
  int version;      /* falconGpuModuleVersion of the module's build */
  const char* name; /* for messages: whose matrix products these are */
  int (*countDevices)(int* count, char* why, size_t room);
  /* Keeps device `device` (-1: the one of the calling thread's CUDA context) busy for about `seconds`, on a stream of
   * its own; takes up to 200 MiB of its memory, less where there is less, for that time only. */
  int (*measure)(int device, double seconds, struct FalconGpuFigures* figures, char* why, size_t room);
};

/* The one exported symbol. */
const struct FalconGpuModule* falconGpuModule(void);

#ifdef __cplusplus
}
#endif

#endif
