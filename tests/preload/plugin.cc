// Stands for an extension that a program opens, linked to a library of NCCL of its own.
#include "nccl.h"

extern "C" __attribute__((visibility("default"))) int pluginCalls(int rounds) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  int failed = 0;
  for (int i = 0; i < rounds; ++i) {
    failed += ncclGetUniqueId(&id) != ncclSuccess;
    failed += ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
    failed += ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, comm, nullptr) != ncclSuccess;
    failed += ncclCommDestroy(comm) != ncclSuccess;
  }
  return failed;
}
