// Stands for the vendor's library where the cost of coming to it is measured: every function returns at once.
#pragma GCC visibility push(default)
#include "nccl.h"
#pragma GCC visibility pop

#include <cstring>

struct ncclComm {
  int rank, size;
};

#define VENDOR extern "C" __attribute__((visibility("default")))
#define TWIN(name) VENDOR __attribute__((weak, alias("p" #name))) decltype(p##name) name;

VENDOR ncclResult_t pncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
TWIN(ncclGetVersion)
/// As the vendor's, it leaves all but 40 bytes zero.
VENDOR ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  id->internal[0] = 1;
  return ncclSuccess;
}
TWIN(ncclGetUniqueId)
VENDOR ncclResult_t pncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId, int rank) {
  *comm = new ncclComm{rank, size};
  return ncclSuccess;
}
TWIN(ncclCommInitRank)
VENDOR ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
TWIN(ncclCommDestroy)
VENDOR ncclResult_t pncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
TWIN(ncclAllReduce)
