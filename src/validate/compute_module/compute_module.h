// What libnccl_falcon_compute.so offers: one table of functions, in plain C.
#ifndef FALCON_COMPUTE_MODULE_H
#define FALCON_COMPUTE_MODULE_H

#ifdef __cplusplus
extern "C" {
#endif

enum { falconComputeModuleVersion = 2 };

struct FalconComputeModule {
  int version;      /* falconComputeModuleVersion of the module's build */
  const char* name; /* for messages: whose matrix product this is */
  /* c = a b; all three are size x size floats, row by row. One thread. */
  void (*multiply)(int size, const float* a, const float* b, float* c);
  void (*multiplyDouble)(int size, const double* a, const double* b, double* c);
};

/* The one exported symbol. */
const struct FalconComputeModule* falconComputeModule(void);

#ifdef __cplusplus
}
#endif

#endif
