#include "train/trainer.h"

#include <cinttypes>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "train/schedule.h"

namespace falcon::train {

namespace {

double monotonicSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Trainer::Trainer(const Options& options)
    : options_(options),
      layout_(layoutOf(options.inJob.rank, options.dataParallel, options.pipelineParallel, options.tensorParallel)),
      log_(options.log, options.inJob.rank),
      communicators_(options.inJob, layout_, options.microBatches, options.overlap),
      source_(options.seed, options.shape.vocabulary),
      stage_(options.shape, options.seed, layout_.pipeline, layout_.tensor, pipelineSlots(layout_.pipeline),
             communicators_),
      pipeline_(stage_, layout_.pipeline, communicators_) {
  AdamSettings settings;
  settings.learningRate = options.learningRate;
  for (auto& bucket : stage_.buckets()) optimisers_.emplace_back(bucket.count(), settings);
}

int Trainer::run() {
  describe();
  if (options_.duration > 0) stopTime_ = monotonicSeconds() + options_.duration;
  const std::uint64_t first = resume();
  log_.begin(first > 0);
  bool stop = options_.iterations > 0 && first >= options_.iterations;
  std::optional<int> restart;
  for (std::uint64_t iteration = first; !stop && !restart; ++iteration) {
    const double start = monotonicSeconds();
    const Outcome outcome = iterate(iteration);
    report({iteration, outcome.loss, start, monotonicSeconds(), outcome.microBatches});
    stop = outcome.stop || iteration + 1 == options_.iterations;
    restart = keep(iteration, stop);
  }
  communicators_.close();
  return restart.value_or(0);
}

std::uint64_t Trainer::resume() {
  if (options_.checkpoints.empty()) return 0;
  communicators_.useCheckpoints(options_.checkpoints);
  const auto add = [&](std::size_t bucket, const char* what, std::span<std::byte> bytes) {
    communicators_.registerState("bucket-" + std::to_string(bucket) + "." + what, bytes);
  };
  for (std::size_t i = 0; i < optimisers_.size(); ++i) {
    add(i, "weights", std::as_writable_bytes(std::span(stage_.buckets()[i].values())));
    add(i, "adam.first", std::as_writable_bytes(optimisers_[i].firstMoments()));
    add(i, "adam.second", std::as_writable_bytes(optimisers_[i].secondMoments()));
    add(i, "adam.steps", std::as_writable_bytes(std::span(&optimisers_[i].steps(), 1)));
  }
  const std::uint64_t first = communicators_.restore().value_or(0);
  if (first > 0 && !options_.quiet && options_.inJob.rank == 0)
    std::printf("goes on from the checkpoint of iteration %" PRIu64 "\n", first);
  return first;
}

std::optional<int> Trainer::keep(std::uint64_t iteration, bool last) {
  if (options_.checkpoints.empty()) return std::nullopt;
  const auto wanted = communicators_.wanted(iteration);
  const bool due = options_.checkpointEvery > 0 && (iteration + 1) % options_.checkpointEvery == 0;
  if (due || wanted.checkpoint) {
    communicators_.beginPhase("checkpoint");
    communicators_.checkpoint(iteration + 1);
    communicators_.endPhase();
  }
  if (last) communicators_.synchronizeCheckpoint();
  if (last || !wanted.restart) return std::nullopt;
  return communicators_.restart();
}

Trainer::Outcome Trainer::iterate(std::uint64_t iteration) {
  const MicroBatchRange share = communicators_.beginIteration(iteration);
  auto& buckets = stage_.buckets();
  for (auto& bucket : buckets) bucket.clearGradients();
  // Every micro-batch counts the same, whichever replica computes it: the sum over all is the mean over all.
  const double lossSum = pipeline_.run(
      share.count, 1.0 / options_.microBatches,
      [&](int index) {
        return source_.batch(iteration, share.first + index, options_.shape.microBatchSize, options_.shape.sequence);
      },
      [&](std::size_t bucket) {
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
  return agree(iteration, lossSum, share.count, isTimeToStop());
}

bool Trainer::isTimeToStop() const {
  return monotonicSeconds() >= stopTime_ || (!options_.until.empty() && std::filesystem::exists(options_.until));
}

Trainer::Outcome Trainer::agree(std::uint64_t iteration, double lossSum, int microBatches, bool isTimeToStop) {
  const bool speaks = stage_.last() && layout_.tensor.index == 0;  // for its replica
  const bool decides = options_.inJob.rank == 0;
  double sums[] = {speaks ? lossSum : 0.0, speaks ? microBatches : 0.0, decides && isTimeToStop ? 1.0 : 0.0};
  communicators_.sumOverJob(sums);
  if (sums[1] != options_.microBatches)
    throw std::runtime_error("iteration " + std::to_string(iteration) + ": the replicas' plans cover " +
                             std::to_string(static_cast<int>(sums[1])) + " micro-batches instead of " +
                             std::to_string(options_.microBatches));
  const double loss = sums[0] / options_.microBatches;
  if (!std::isfinite(loss))
    throw std::runtime_error("iteration " + std::to_string(iteration) +
                             ": the loss is not finite; lower --learning-rate");
  return {loss, microBatches, sums[2] > 0};
}

void Trainer::describe() const {
  if (options_.quiet || options_.inJob.rank != 0) return;
  NoReducer<float> alone;
  const Stage<float> whole(options_.shape, options_.seed, {}, {}, 1, alone);
  std::printf("model %zu parameters, dp %d x pp %d x tp %d, %d micro-batches of %d x %d tokens\n",
              whole.parameterCount(), layout_.data.count, layout_.pipeline.count, layout_.tensor.count,
              options_.microBatches, options_.shape.microBatchSize, options_.shape.sequence);
  std::fflush(stdout);
}

void Trainer::report(const IterationRecord& record) {
  log_.write(record);
  if (options_.quiet || options_.inJob.rank != 0) return;
  std::printf("iteration %" PRIu64 " loss %.4f %.3f s\n", record.iteration, record.loss, record.end - record.start);
  std::fflush(stdout);
}

}  // namespace falcon::train
