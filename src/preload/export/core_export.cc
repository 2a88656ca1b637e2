// The only export of libnccl-falcon-core.so.
#include "preload/core.h"

extern "C" __attribute__((visibility("default"))) const falcon::front::CoreFunctions* ncclFalconCoreFunctions(
    const char* build) {
  return falcon::preload::coreFunctions(build);
}
