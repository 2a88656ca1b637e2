#include "train/pipeline.h"

#include "train/schedule.h"

namespace falcon::train {

template <class Real>
Pipeline<Real>::Pipeline(Stage<Real>& stage, Shard place, PipelineLink<Real>& link)
    : stage_(stage), place_(place), link_(link), batches_(stage.slots()) {
  for (auto& buffer : buffers_) buffer.resize(stage.activationCount());
}

template <class Real>
double Pipeline<Real>::run(int microBatches, double scale, const std::function<MicroBatch(int)>& batchAt,
                           const std::function<void(std::size_t)>& bucketDone) {
  double loss = 0;
  int to = -1;
  int turn = 0;
  int stillToCome = microBatches;  // backward passes
  const auto exchange = [&](int from) {
    if (to < 0 && from < 0) return;
    link_.exchange(to, buffers_[1 - turn].data(), from, buffers_[turn].data(), stage_.activationCount());
  };
  for (const PipelineStep& step : oneForwardOneBackward(place_, microBatches)) {
    exchange(sourceOf(step, place_));
    const int slot = step.microBatch % stage_.slots();
    if (step.forward) {
      link_.beginPhase("data");
      batches_[slot] = batchAt(step.microBatch);
      link_.endPhase();
      link_.beginPhase("forward");
      loss += stage_.forward(slot, batches_[slot], buffers_[turn].data());
      link_.endPhase();
    } else {
      const bool lastOne = --stillToCome == 0;
      link_.beginPhase("backward");
      stage_.backward(slot, batches_[slot], scale, buffers_[turn].data(), [&](std::size_t bucket) {
        if (lastOne) bucketDone(bucket);
      });
      link_.endPhase();
    }
    to = targetOf(step, place_);
    turn = 1 - turn;
  }
  exchange(-1);
  return loss;
}

template class Pipeline<float>;
template class Pipeline<double>;

}  // namespace falcon::train
