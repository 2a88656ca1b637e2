// Functions of NCCL that our nccl.h does not have yet.
#pragma once

#pragma GCC visibility push(default)
#include "nccl.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 31, 2)
extern "C" {
struct ncclCollConfig_v23100;
using FalconCollConfig = const ncclCollConfig_v23100*;
ncclResult_t ncclAllReduceConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t,
                                 FalconCollConfig);
ncclResult_t ncclBroadcastConfig(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                                 FalconCollConfig);
ncclResult_t ncclReduceConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t,
                              FalconCollConfig);
ncclResult_t ncclAllGatherConfig(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t,
                                 FalconCollConfig);
ncclResult_t ncclReduceScatterConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t,
                                     FalconCollConfig);
ncclResult_t ncclAlltoAllConfig(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t, FalconCollConfig);
ncclResult_t ncclGatherConfig(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                              FalconCollConfig);
ncclResult_t ncclScatterConfig(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                               FalconCollConfig);
}
#else
using FalconCollConfig = const ncclCollConfig_t*;
#endif
#pragma GCC visibility pop
