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

extern "C" __attribute__((visibility("default"))) ncclComm_t pluginMakes() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  return ncclGetUniqueId(&id) == ncclSuccess && ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess ? comm : nullptr;
}

// As a binding wraps functions: the call is the last thing that it does, so the compiler makes a jump of it.
extern "C" __attribute__((visibility("default"))) ncclResult_t pluginReduces(ncclComm_t comm) {
  return ncclAllReduce(nullptr, nullptr, 2, ncclFloat, ncclSum, comm, nullptr);
}
extern "C" __attribute__((visibility("default"))) ncclResult_t pluginSplits(ncclComm_t comm, ncclComm_t* child) {
  return ncclCommSplit(comm, 0, 0, child, nullptr);
}
extern "C" __attribute__((visibility("default"))) ncclResult_t pluginEnds(ncclComm_t comm) {
  return ncclCommDestroy(comm);
}
