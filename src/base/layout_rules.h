// What ncclFalconLayout_t may be, and the plan where nobody re-split anything. Without anything of C++'s library, since
// the front of the preload library has none of it.
#pragma once

#include <stddef.h>
#include <stdio.h>

namespace falcon {

/// Whether the layout (an ncclFalconLayout_t) fits a communicator of so many ranks; else `problem` gets what does not.
template <class Layout>
bool layoutFits(const Layout& layout, int ranks, char* problem, size_t size) {
  const struct {
    const char* name;
    int size, index;
  } axes[] = {{"dataParallel", layout.dataParallelSize, layout.dataParallelIndex},
              {"pipelineParallel", layout.pipelineParallelSize, layout.pipelineParallelIndex},
              {"tensorParallel", layout.tensorParallelSize, layout.tensorParallelIndex}};
  long long product = 1;
  for (const auto& axis : axes) {
    if (axis.size < 1 || axis.size > ranks)
      return snprintf(problem, size, "%sSize is %d, not 1 to %d", axis.name, axis.size, ranks), false;
    if (axis.index < 0 || axis.index >= axis.size)
      return snprintf(problem, size, "%sIndex is %d, not 0 to %d", axis.name, axis.index, axis.size - 1), false;
    product *= axis.size;
  }
  if (product != ranks)
    return snprintf(problem, size, "the sizes make %lld ranks, but comm has %d", product, ranks), false;
  if (layout.microBatches >= layout.dataParallelSize) return true;
  snprintf(problem, size, "microBatches is %d; every one of the %d replicas needs one", layout.microBatches,
           layout.dataParallelSize);
  return false;
}

struct MicroBatchShare {
  int count, first;
};
/// As equal as whole micro-batches allow; the first replicas take one more.
constexpr MicroBatchShare equalShare(int microBatches, int replicas, int index) {
  const int share = microBatches / replicas, extra = microBatches % replicas;
  return {share + (index < extra ? 1 : 0), index * share + (index < extra ? index : extra)};
}

}  // namespace falcon
