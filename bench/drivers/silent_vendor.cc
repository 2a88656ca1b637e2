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

// What libnccl.so.2 wants of a vendor's library before it drives one.
VENDOR const char* pncclGetErrorString(ncclResult_t) {
  return "";
}
VENDOR const char* pncclGetLastError(ncclComm_t) {
  return "";
}
VENDOR ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  return pncclCommInitRank(comm, size, id, rank);
}
VENDOR ncclResult_t pncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
VENDOR ncclResult_t pncclCommCount(ncclComm_t comm, int* size) {
  *size = comm->size;
  return ncclSuccess;
}
VENDOR ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
VENDOR ncclResult_t pncclCommCuDevice(ncclComm_t, int* device) {
  *device = 0;
  return ncclSuccess;
}
#define NOTHING(name, ...)                       \
  VENDOR ncclResult_t pnccl##name(__VA_ARGS__) { \
    return ncclSuccess;                          \
  }
NOTHING(CommSplit, ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*)
NOTHING(CommFinalize, ncclComm_t)
NOTHING(CommAbort, ncclComm_t)
NOTHING(Broadcast, const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
NOTHING(Reduce, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t)
NOTHING(AllGather, const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)
NOTHING(ReduceScatter, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t)
NOTHING(Send, const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
NOTHING(Recv, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
NOTHING(RedOpCreatePreMulSum, ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t)
NOTHING(RedOpDestroy, ncclRedOp_t, ncclComm_t)
NOTHING(GroupStart)
NOTHING(GroupEnd)
