#include "train/layout.h"

#include <algorithm>

namespace falcon::train {

RankParts layoutOf(int rank, int dataParallel, int pipelineParallel, int tensorParallel) {
  return {{rank / (pipelineParallel * tensorParallel), dataParallel},
          {rank / tensorParallel % pipelineParallel, pipelineParallel},
          {rank % tensorParallel, tensorParallel}};
}

MicroBatchRange equalShare(int microBatches, Shard replica) {
  const int base = microBatches / replica.count;
  const int larger = microBatches % replica.count;
  return {replica.index * base + std::min(replica.index, larger), base + (replica.index < larger ? 1 : 0)};
}

}  // namespace falcon::train
