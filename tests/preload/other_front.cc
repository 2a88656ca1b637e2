// Stands for a preload library of another build that watches already.
#include "base/watch_claim.h"

extern "C" __attribute__((visibility("default"))) falcon::watch_claim::Answer ncclFalconClaimWatch(
    const char*, falcon::watch_claim::GetCore) {
  return falcon::watch_claim::Answer::others;
}
