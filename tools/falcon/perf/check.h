// Fills buffers and counts wrong elements, as nccl-tests' -c 1 does.
#pragma once

#include "perf/benchmark_case.h"

namespace falcon::perf {

size_t elementSizeOf(ncclDataType_t type);

/// Small whole numbers that depend on rank and index, so that sums of up to 64 ranks are exact in every type.
void fill(void* buffer, size_t elements, ncclDataType_t type, int rank, size_t firstIndex);

/// What must be in element `index` of rank's result.
struct Expectation {
  Collective collective;
  Counts counts;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root, rank, ranks;
};
/// Elements of `result` that are not what they must be; 0 where this rank gets no result.
size_t countWrong(const void* result, const Expectation& expectation);

}  // namespace falcon::perf
