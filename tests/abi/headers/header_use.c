/* Compiled with several standards, with and without CUDA headers: that it compiles is the test. */
#include "nccl_falcon.h"

ncclConfig_t falconHeaderConfig = NCCL_CONFIG_INITIALIZER;
ncclSimInfo_t falconHeaderSimInfo = NCCL_SIM_INFO_INITIALIZER;

ncclResult_t falconHeaderUse(ncclComm_t comm, const float* in, float* out, cudaStream_t stream);
ncclResult_t falconHeaderUse(ncclComm_t comm, const float* in, float* out, cudaStream_t stream) {
  ncclDataType_t types[] = {ncclHalf, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2, ncclFloat};
  ncclResult_t result = ncclAllReduce(in, out, 1, types[4], ncclSum, comm, stream);
  return result == ncclSuccess ? pncclGroupEnd() : result;
}

ncclResult_t falconHeaderStreamUse(ncclComm_t comm, const float* in, float* out, ncclFalconStream_t stream);
ncclResult_t falconHeaderStreamUse(ncclComm_t comm, const float* in, float* out, ncclFalconStream_t stream) {
  return falconHeaderUse(comm, in, out, stream);
}
