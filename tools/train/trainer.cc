#include "train/trainer.h"

#include <cinttypes>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <stdexcept>

namespace falcon::train {

namespace {

double secondsOf(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double monotonicSeconds() {
  return secondsOf(CLOCK_MONOTONIC);
}

}  // namespace

Trainer::Trainer(const Options& options)
    : options_(options),
      log_(options.log, options.inJob.rank),
      communicators_(options.inJob, layoutOfRole(options.inJob.rank), options.microBatches, options.overlap),
      source_(options.seed, options.shape.vocabulary),
      part_(std::make_unique<Part>(options_, layoutOfRole(options.inJob.rank), communicators_)) {}

RankParts Trainer::layoutOfRole(int role) const {
  return layoutOf(role, options_.dataParallel, options_.pipelineParallel, options_.tensorParallel);
}

int Trainer::run() {
  describe();
  const std::uint64_t first = resume();
  log_.begin(first > 0);
  bool stop = options_.iterations > 0 && first >= options_.iterations;
  std::optional<int> restart;
  for (std::uint64_t iteration = first; !stop && !restart; ++iteration) {
    const double start = monotonicSeconds(), used = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
    if (iteration == first && options_.duration > 0) stopTime_ = start + options_.duration;
    const Outcome outcome = iterate(iteration);
    report({iteration, outcome.loss, start, monotonicSeconds(), outcome.microBatches,
            secondsOf(CLOCK_PROCESS_CPUTIME_ID) - used, communicators_.told().health, communicators_.told().changed});
    stop = outcome.stop || iteration + 1 == options_.iterations;
    restart = keep(iteration, stop);
  }
  communicators_.close();
  return restart.value_or(0);
}

std::uint64_t Trainer::resume() {
  const bool moves = communicators_.canReshape();
  if (!options_.roles.empty() && !moves)
    throw std::runtime_error("--roles: this libnccl.so.2 exchanges no roles; NCCL Falcon's does");
  if (options_.checkpoints.empty() && !moves) return 0;
  if (!options_.checkpoints.empty()) communicators_.useCheckpoints(options_.checkpoints);
  for (const NamedState& each : part_->state()) communicators_.registerState(each.name, each.bytes);
  if (moves) communicators_.useReshape(*this);
  if (options_.checkpoints.empty()) return 0;
  const std::uint64_t first = communicators_.restore().value_or(0);
  if (first > 0 && !options_.quiet && options_.inJob.rank == 0)
    std::printf("goes on from the checkpoint of iteration %" PRIu64 "\n", first);
  return first;
}

std::vector<NamedState> Trainer::prepare(int role) {
  next_ = std::make_unique<Part>(options_, layoutOfRole(role), communicators_);
  return next_->state();
}

void Trainer::commit(int role) {
  part_ = std::move(next_);
  if (options_.quiet) return;
  std::printf("rank %d has role %d now\n", options_.inJob.rank, role);
  std::fflush(stdout);
}

void Trainer::abandon() {
  next_.reset();
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
  for (const RolesAt& change : options_.roles)
    if (change.iteration == iteration) communicators_.reshape(change.roles);
  // The rank may have another role afterwards.
  const MicroBatchRange share = communicators_.beginIteration(iteration);
  const double lossSum = part_->iterate(share, [&](int index) {
    return source_.batch(iteration, share.first + index, options_.shape.microBatchSize, options_.shape.sequence);
  });
  return agree(iteration, lossSum, share.count, isTimeToStop());
}

bool Trainer::isTimeToStop() const {
  return monotonicSeconds() >= stopTime_ || (!options_.until.empty() && std::filesystem::exists(options_.until));
}

Trainer::Outcome Trainer::agree(std::uint64_t iteration, double lossSum, int microBatches, bool isTimeToStop) {
  const bool speaks = part_->speaks();
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
              whole.parameterCount(), options_.dataParallel, options_.pipelineParallel, options_.tensorParallel,
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
