// What ncclFalconLayout_t may be, and the plan where nobody re-split anything. Without anything of C++'s library, since
// the front of the preload library has none of it.
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <string.h>

namespace falcon {

/// The caller's layout, with 0 for the fields that its version does not have. False: it is too small for any version.
template <class Layout>
bool takeLayout(const Layout& given, Layout& layout) {
  if (given.size < offsetof(Layout, microBatchMultiple)) return false;
  memset(&layout, 0, sizeof layout);
  memcpy(&layout, &given, given.size < sizeof layout ? given.size : sizeof layout);
  layout.unused = 0;
  return true;
}

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
  if (layout.microBatches < layout.dataParallelSize)
    return snprintf(problem, size, "microBatches is %d; every one of the %d replicas needs one", layout.microBatches,
                    layout.dataParallelSize),
           false;
  const struct {
    const char* name;
    int value;
  } fromZero[] = {{"microBatchMultiple", layout.microBatchMultiple},
                  {"leastMicroBatches", layout.leastMicroBatches},
                  {"mostMicroBatches", layout.mostMicroBatches},
                  {"rail", layout.rail}};
  for (const auto& field : fromZero)
    if (field.value < 0)
      return snprintf(problem, size, "%s is %d; 0 says nothing of it, and it cannot be less", field.name, field.value),
             false;
  if (layout.microBatchMultiple > 1 && layout.microBatches % layout.microBatchMultiple != 0)
    return snprintf(problem, size, "microBatches is %d, no multiple of microBatchMultiple, %d", layout.microBatches,
                    layout.microBatchMultiple),
           false;
  if (layout.microBatchMultiple > 1 && layout.microBatches / layout.microBatchMultiple < layout.dataParallelSize)
    return snprintf(problem, size, "microBatches is %d; every one of the %d replicas needs microBatchMultiple, %d",
                    layout.microBatches, layout.dataParallelSize, layout.microBatchMultiple),
           false;
  if (layout.mostMicroBatches == 0 || layout.leastMicroBatches <= layout.mostMicroBatches) return true;
  snprintf(problem, size, "leastMicroBatches is %d, but mostMicroBatches %d", layout.leastMicroBatches,
           layout.mostMicroBatches);
  return false;
}

struct MicroBatchShare {
  int count, first;
};
/// As equal as whole multiples of so many micro-batches allow; the first replicas take one more.
constexpr MicroBatchShare equalShare(int microBatches, int replicas, int index, int multiple = 1) {
  const int units = microBatches / multiple, share = units / replicas, extra = units % replicas;
  return {multiple * (share + (index < extra ? 1 : 0)), multiple * (index * share + (index < extra ? index : extra))};
}

}  // namespace falcon
