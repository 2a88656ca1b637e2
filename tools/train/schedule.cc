#include "train/schedule.h"

#include <algorithm>

namespace falcon::train {

namespace {
int before(Shard stage) {
  return stage.index - 1;
}
int after(Shard stage) {
  return stage.index + 1 < stage.count ? stage.index + 1 : -1;
}
}  // namespace

std::vector<PipelineStep> oneForwardOneBackward(Shard stage, int microBatches) {
  const int ahead = std::min(stage.count - stage.index - 1, microBatches);
  std::vector<PipelineStep> steps;
  for (int i = 0; i < ahead; ++i) steps.push_back({true, i});
  for (int i = ahead; i < microBatches; ++i) {
    steps.push_back({true, i});
    steps.push_back({false, i - ahead});
  }
  for (int i = microBatches - ahead; i < microBatches; ++i) steps.push_back({false, i});
  return steps;
}

int sourceOf(const PipelineStep& step, Shard stage) {
  return step.forward ? before(stage) : after(stage);
}
int targetOf(const PipelineStep& step, Shard stage) {
  return step.forward ? after(stage) : before(stage);
}

}  // namespace falcon::train
