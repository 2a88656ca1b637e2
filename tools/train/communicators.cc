#include "train/communicators.h"

#include <cstdio>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "falcon/host_unique_id.h"
#include "nccl_falcon.h"
#include "train/rendezvous.h"

// Absent in other libraries of the same ABI; then they are null: the split stays equal, and nothing overlaps.
#pragma weak ncclFalconRegisterLayout
#pragma weak ncclFalconIterationBegin
#pragma weak ncclFalconIterationCallback
#pragma weak ncclFalconRangeBegin
#pragma weak ncclFalconRangeEnd
#pragma weak ncclFalconStreamCreate
#pragma weak ncclFalconStreamSynchronize
#pragma weak ncclFalconStreamDestroy
#pragma weak ncclFalconRegisterState
#pragma weak ncclFalconCheckpoint
#pragma weak ncclFalconCheckpointSynchronize
#pragma weak ncclFalconRestore
#pragma weak ncclFalconWanted
#pragma weak ncclFalconRestart
#pragma weak ncclFalconRegisterReshape
#pragma weak ncclFalconReshape

namespace falcon::train {

namespace {

void require(ncclResult_t result, const char* function) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(std::string(function) + ": " + ncclGetErrorString(result) + ": " +
                           ncclGetLastError(nullptr));
}

ncclComm* splitOff(ncclComm* world, int size, int color, int key) {
  if (size == 1) return nullptr;
  ncclComm* group = nullptr;
  require(ncclCommSplit(world, color, key, &group, nullptr), "ncclCommSplit");
  return group;
}

}  // namespace

struct Communicators::Ends {
  static void hear(const ncclFalconIterationEnd_t* end, void* communicators) {
    constexpr const char* healths[] = {"unknown", "healthy", "suspected", "slow"};
    const bool isKnown = end->health >= 0 && static_cast<std::size_t>(end->health) < std::size(healths);
    static_cast<Communicators*>(communicators)->told_ = {healths[isKnown ? end->health : 0], end->changed};
  }
};

Communicators::Communicators(const RankInJob& inJob, const RankParts& layout, int microBatches, bool overlap)
    : layout_(layout), microBatches_(microBatches) {
  ncclUniqueId id{};
  if (inJob.rank == 0) require(tools::hostUniqueId(id), "ncclGetUniqueId");
  shareToken(inJob, id.internal);
  require(ncclCommInitRank(&world_, inJob.size, id, inJob.rank), "ncclCommInitRank");

  const auto& [data, pipeline, tensor] = layout_;
  data_ = splitOff(world_, data.count, pipeline.index * tensor.count + tensor.index, data.index);
  pipeline_ = splitOff(world_, pipeline.count, data.index * tensor.count + tensor.index, pipeline.index);
  tensor_ = splitOff(world_, tensor.count, data.index * pipeline.count + pipeline.index, tensor.index);
  planned_ = registerLayout();
  if (planned_ && ncclFalconIterationCallback != nullptr)
    require(ncclFalconIterationCallback(world_, &Ends::hear, this, 0), "ncclFalconIterationCallback");
  if (overlap && data_ != nullptr && ncclFalconStreamCreate != nullptr)
    require(ncclFalconStreamCreate(&gradientStream_), "ncclFalconStreamCreate");
}

Communicators::~Communicators() = default;

void Communicators::close() {
  if (gradientStream_ != nullptr) require(ncclFalconStreamDestroy(gradientStream_), "ncclFalconStreamDestroy");
  gradientStream_ = nullptr;
  for (ncclComm** one : {&tensor_, &pipeline_, &data_, &world_}) {
    if (*one != nullptr) require(ncclCommDestroy(*one), "ncclCommDestroy");
    *one = nullptr;
  }
}

bool Communicators::registerLayout() {
  bool registered = false;
  if (ncclFalconRegisterLayout != nullptr && ncclFalconIterationBegin != nullptr) {
    ncclFalconLayout_t described{};
    described.size = sizeof described;
    described.dataParallelSize = layout_.data.count;
    described.pipelineParallelSize = layout_.pipeline.count;
    described.tensorParallelSize = layout_.tensor.count;
    described.dataParallelIndex = layout_.data.index;
    described.pipelineParallelIndex = layout_.pipeline.index;
    described.tensorParallelIndex = layout_.tensor.index;
    described.microBatches = microBatches_;
    registered = ncclFalconRegisterLayout(world_, &described) == ncclSuccess;
  }
  // All or none: replicas that disagree on the plan would compute some micro-batches twice and others never.
  double refusals[] = {registered ? 0.0 : 1.0};
  sumOverJob(refusals);
  return refusals[0] == 0;
}

MicroBatchRange Communicators::beginIteration(std::uint64_t iteration) {
  if (!planned_) return equalShare(microBatches_, layout_.data);
  told_ = {};
  ncclFalconPlan_t plan{};
  plan.size = sizeof plan;
  require(ncclFalconIterationBegin(world_, iteration, &plan), "ncclFalconIterationBegin");
  if (plan.microBatches < 1 || plan.firstMicroBatch < 0 || plan.microBatches > microBatches_ - plan.firstMicroBatch)
    throw std::runtime_error("the plan of iteration " + std::to_string(iteration) + " gives this replica " +
                             std::to_string(plan.microBatches) + " micro-batches from " +
                             std::to_string(plan.firstMicroBatch) + ", of " + std::to_string(microBatches_));
  return {plan.firstMicroBatch, plan.microBatches};
}

void Communicators::sum(float* values, std::size_t count) {
  if (tensor_ == nullptr) return;
  require(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, tensor_, nullptr), "ncclAllReduce");
}

void Communicators::exchange(int to, const float* sent, int from, float* received, std::size_t count) {
  require(ncclGroupStart(), "ncclGroupStart");
  ncclResult_t result = ncclSuccess;
  if (to >= 0) result = ncclSend(sent, count, ncclFloat32, to, pipeline_, nullptr);
  if (result == ncclSuccess && from >= 0) result = ncclRecv(received, count, ncclFloat32, from, pipeline_, nullptr);
  require(result, "ncclSend or ncclRecv");
  require(ncclGroupEnd(), "ncclGroupEnd");
}

void Communicators::beginPhase(const char* name) {
  if (ncclFalconRangeBegin != nullptr) require(ncclFalconRangeBegin(name), "ncclFalconRangeBegin");
}

void Communicators::endPhase() {
  if (ncclFalconRangeEnd != nullptr) require(ncclFalconRangeEnd(), "ncclFalconRangeEnd");
}

void Communicators::sumGradients(std::span<float> gradients) {
  if (data_ == nullptr) return;
  require(
      ncclAllReduce(gradients.data(), gradients.data(), gradients.size(), ncclFloat32, ncclSum, data_, gradientStream_),
      "ncclAllReduce");
}

void Communicators::awaitGradients() {
  if (gradientStream_ != nullptr) require(ncclFalconStreamSynchronize(gradientStream_), "ncclFalconStreamSynchronize");
}

void Communicators::sumOverJob(std::span<double> values) {
  require(ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat64, ncclSum, world_, nullptr),
          "ncclAllReduce");
}

bool Communicators::canReshape() {
  return ncclFalconRegisterReshape != nullptr && ncclFalconRegisterState != nullptr;
}

/// What the library calls, from this thread, in beginIteration() and reshape().
struct Communicators::Hooks {
  static Communicators& of(void* context) { return *static_cast<Communicators*>(context); }

  static ncclResult_t prepare(void* context, int role, const ncclFalconBuffer_t** buffers, size_t* count) try {
    Communicators& own = of(context);
    own.room_ = own.taker_->prepare(role);
    own.buffers_.clear();
    for (const NamedState& each : own.room_)
      own.buffers_.push_back({each.name.c_str(), each.bytes.data(), each.bytes.size()});
    *buffers = own.buffers_.data();
    *count = own.buffers_.size();
    return ncclSuccess;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "falcon-train: role %d cannot be taken: %s\n", role, error.what());
    return ncclSystemError;
  }
  static void commit(void* context, int role) { of(context).taker_->commit(role); }
  static void abandon(void* context, int) { of(context).taker_->abandon(); }
};

void Communicators::useReshape(RoleTaker& taker) {
  taker_ = &taker;
  const ncclComm_t groups[] = {data_, pipeline_, tensor_};
  const ncclFalconReshapeHooks_t hooks{sizeof hooks,    this,   &Hooks::prepare,  &Hooks::commit,
                                       &Hooks::abandon, groups, std::size(groups)};
  require(ncclFalconRegisterReshape(world_, &hooks), "ncclFalconRegisterReshape");
}

void Communicators::reshape(std::span<const int> roles) {
  require(ncclFalconReshape(world_, roles.data(), static_cast<int>(roles.size())), "ncclFalconReshape");
}

void Communicators::useCheckpoints(std::string folder) {
  if (ncclFalconRestore == nullptr)
    throw std::runtime_error("--checkpoints: this libnccl.so.2 keeps none; NCCL Falcon's does");
  checkpoints_ = std::move(folder);
}

void Communicators::registerState(const std::string& name, std::span<std::byte> bytes) {
  require(ncclFalconRegisterState(world_, name.c_str(), bytes.data(), bytes.size(), NCCL_FALCON_STATE_REPLICATED),
          "ncclFalconRegisterState");
}

std::optional<std::uint64_t> Communicators::restore() {
  std::uint64_t number = 0;
  require(ncclFalconRestore(world_, checkpoints_.c_str(), &number), "ncclFalconRestore");
  if (number == NCCL_FALCON_NO_CHECKPOINT) return std::nullopt;
  return number;
}

Communicators::Wanted Communicators::wanted(std::uint64_t iteration) {
  unsigned wanted = 0;
  require(ncclFalconWanted(world_, iteration, &wanted), "ncclFalconWanted");
  return {(wanted & NCCL_FALCON_WANTED_CHECKPOINT) != 0, (wanted & NCCL_FALCON_WANTED_RESTART) != 0};
}

void Communicators::checkpoint(std::uint64_t number) {
  require(ncclFalconCheckpoint(world_, number, checkpoints_.c_str()), "ncclFalconCheckpoint");
}

void Communicators::synchronizeCheckpoint() {
  require(ncclFalconCheckpointSynchronize(world_), "ncclFalconCheckpointSynchronize");
}

int Communicators::restart() {
  int code = 0;
  require(ncclFalconRestart(world_, &code), "ncclFalconRestart");
  return code;
}

}  // namespace falcon::train
