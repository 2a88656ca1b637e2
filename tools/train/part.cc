#include "train/part.h"

#include "train/schedule.h"

namespace falcon::train {

Part::Part(const Options& options, const RankParts& layout, Communicators& communicators)
    : options_(options),
      layout_(layout),
      communicators_(communicators),
      stage_(options.shape, options.seed, layout.pipeline, layout.tensor, pipelineSlots(layout.pipeline),
             communicators),
      pipeline_(stage_, layout.pipeline, communicators) {
  AdamSettings settings;
  settings.learningRate = options.learningRate;
  for (auto& bucket : stage_.buckets()) optimisers_.emplace_back(bucket.count(), settings);
}

double Part::iterate(const MicroBatchRange& share, const std::function<MicroBatch(int)>& batchAt) {
  auto& buckets = stage_.buckets();
  for (auto& bucket : buckets) bucket.clearGradients();
  // Every micro-batch counts the same, whichever replica computes it: the sum over all is the mean over all.
  const double lossSum = pipeline_.run(share.count, 1.0 / options_.microBatches, batchAt, [&](std::size_t bucket) {
    if (communicators_.overlaps()) communicators_.sumGradients(buckets[bucket].gradients());
  });
  communicators_.beginPhase("gradients");
  communicators_.awaitGradients();
  for (std::size_t i = buckets.size(); i-- > 0;) {
    if (!communicators_.overlaps()) communicators_.sumGradients(buckets[i].gradients());
    communicators_.beginPhase("optimiser");
    optimisers_[i].step(buckets[i].values(), buckets[i].gradients());
    communicators_.endPhase();
  }
  communicators_.endPhase();
  return lossSum;
}

std::vector<NamedState> Part::state() {
  std::vector<NamedState> state;
  for (std::size_t i = 0; i < optimisers_.size(); ++i) {
    const auto add = [&](const char* what, std::span<std::byte> bytes) {
      state.push_back({"bucket-" + std::to_string(i) + "." + what, bytes});
    };
    add("weights", std::as_writable_bytes(std::span(stage_.buckets()[i].values())));
    add("adam.first", std::as_writable_bytes(optimisers_[i].firstMoments()));
    add("adam.second", std::as_writable_bytes(optimisers_[i].secondMoments()));
    add("adam.steps", std::as_writable_bytes(std::span(&optimisers_[i].steps(), 1)));
  }
  return state;
}

}  // namespace falcon::train
