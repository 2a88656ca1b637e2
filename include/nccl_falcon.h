/* The extension API of NCCL Falcon: what a training framework may tell the library, and ask of it.
 * Every function is safe to call when Falcon is off (NCCL_FALCON unset or 0); it then does the obvious and succeeds.
 * A program that must also run on another libnccl.so.2 looks the functions up with dlsym(). */
#ifndef NCCL_FALCON_H_
#define NCCL_FALCON_H_

#include <stddef.h>
#include <stdint.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_FALCON_API_VERSION 1

/* The version of the running library's extension API, NCCL_FALCON_API_VERSION. Never fails with a valid pointer. */
ncclResult_t ncclFalconGetVersion(int* version);

/* How this rank takes part in hybrid parallelism. Sizes are >= 1; their product is the size of the job's communicator.
 * microBatches is the global number of micro-batches of one iteration, over all data-parallel replicas. */
typedef struct {
  size_t size; /* sizeof(ncclFalconLayout_t) */
  int dataParallelSize, pipelineParallelSize, tensorParallelSize;
  int dataParallelIndex, pipelineParallelIndex, tensorParallelIndex;
  int microBatches;
} ncclFalconLayout_t;

/* Registers the layout. comm spans the job (all ranks of all groups); every rank calls once, after init.
 * Lets Falcon re-split micro-batches between replicas. Errors: ncclInvalidArgument names the field. */
ncclResult_t ncclFalconRegisterLayout(ncclComm_t comm, const ncclFalconLayout_t* layout);

/* The plan in force for one iteration. Replica d computes the global micro-batches
 * [firstMicroBatch, firstMicroBatch + microBatches); its mean gradient counts with gradientWeight = microBatches / all.
 */
typedef struct {
  size_t size; /* sizeof(ncclFalconPlan_t), set by the caller */
  uint64_t version;
  int microBatches;
  int firstMicroBatch;
  double gradientWeight;
} ncclFalconPlan_t;

/* Marks the start of an iteration and fetches the plan; a local call, no communication. Iterations count up from 0 and
 * all ranks pass the same numbers. All ranks get plans of the same version for the same iteration.
 * May hold the caller while the job is trapped or a new plan is being agreed. Errors: ncclInvalidUsage without a
 * layout. */
ncclResult_t ncclFalconIterationBegin(ncclComm_t comm, uint64_t iteration, ncclFalconPlan_t* plan);

#ifdef __cplusplus
}
#endif

#endif
