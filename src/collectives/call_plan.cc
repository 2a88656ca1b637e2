#include "collectives/call_plan.h"

#include <cstring>
#include <limits>

#include "base/log.h"
#include "collectives/algorithm_choice.h"
#include "collectives/exchange.h"

namespace falcon::collectives {
namespace {

bool reads(const MemberShape& shape, const Call& call) {
  switch (call.operation) {
    case Operation::receive:
      return false;
    case Operation::broadcast:
    case Operation::scatter:
      return shape.rank == call.peer;
    default:
      return true;
  }
}
bool writes(const MemberShape& shape, const Call& call) {
  switch (call.operation) {
    case Operation::send:
      return false;
    case Operation::reduce:
    case Operation::gather:
      return shape.rank == call.peer;
    default:
      return true;
  }
}
/// The larger of the two buffers, in elements per unit of Call::count.
int blocksOf(const MemberShape& shape, Operation operation) {
  switch (operation) {
    case Operation::allGather:
    case Operation::reduceScatter:
    case Operation::allToAll:
    case Operation::gather:
    case Operation::scatter:
      return shape.size;
    default:
      return 1;
  }
}

Geometry geometryOf(const MemberShape& shape, const Call& call, std::span<const Rank> ring) {
  const std::size_t elementBytes = sizeOf(call.type);
  Geometry geometry;
  geometry.rank = shape.rank;
  geometry.size = shape.size;
  geometry.ring = ring;
  geometry.root = call.peer;
  geometry.count = call.count;
  geometry.chunk = std::max<std::size_t>(shape.chunkBytes / elementBytes, 1);
  geometry.grain = cacheLine / elementBytes;
  return geometry;
}

Geometry messageGeometryOf(const MemberShape& shape, const Call& call, int channel, Rank peer) {
  Geometry geometry = geometryOf(shape, call, {});
  geometry.chunk = messageChunkOf(shape, call);
  geometry.channel = channel;
  geometry.root = peer;
  return geometry;
}

/// AllToAll, Gather and Scatter as messages of `count` elements, between blocks of the buffers.
class Exchange {
 public:
  Exchange(const MemberShape& shape, const Call& call)
      : shape_(shape), call_(call), blockBytes_(call.count * sizeOf(call.type)) {}

  void send(Rank peer, int block) { add(QueueKey::Kind::send, sendMessage, peer, block, 0); }
  void receive(Rank peer, int block) { add(QueueKey::Kind::receive, receiveMessage, peer, 0, block); }
  void copy(int inputBlock, int outputBlock) {
    add(QueueKey::Kind::copy, localCopy, shape_.rank, inputBlock, outputBlock);
  }
  std::vector<TaskPlan> take() { return std::move(plans_); }

 private:
  void add(QueueKey::Kind kind, const Algorithm& algorithm, Rank peer, int inputBlock, int outputBlock) {
    if (call_.count == 0) return;
    const Geometry geometry = messageGeometryOf(shape_, call_, exchangeChannel, peer);
    Operands operands = operandsOf(shape_, call_);
    if (operands.input) operands.input += inputBlock * blockBytes_;
    if (operands.output) operands.output += outputBlock * blockBytes_;
    plans_.push_back({{kind, exchangeChannel, peer}, {algorithm, geometry, {0, call_.count}}, operands});
  }

  const MemberShape& shape_;
  const Call& call_;
  std::size_t blockBytes_;
  std::vector<TaskPlan> plans_;
};

std::vector<TaskPlan> planExchange(const MemberShape& shape, const Call& call) {
  Exchange exchange(shape, call);
  visitExchange(shape.rank, shape.size, call, exchange);
  return exchange.take();
}

}  // namespace

std::size_t directChunkOf(const MemberShape& shape, const Call& call) {
  return std::max<std::size_t>(std::min(shape.directChunkBytes, shape.chunkBytes) / sizeOf(call.type), 1);
}

std::size_t messageChunkOf(const MemberShape& shape, const Call& call) {
  return std::max<std::size_t>(std::min(shape.messageChunkBytes, shape.chunkBytes) / sizeOf(call.type), 1);
}

Operands operandsOf(const MemberShape& shape, const Call& call) {
  Operands operands;
  operands.input = static_cast<const std::byte*>(call.send);
  operands.output = static_cast<std::byte*>(call.receive);
  operands.elementBytes = sizeOf(call.type);
  operands.members = shape.size;
  if (reduces(call.operation)) operands.combine = combineKernel(call.type, call.reduction);
  if (reduces(call.operation) && call.reduction == ReduceOp::avg) operands.divide = divideKernel(call.type);
  if (reduces(call.operation) && call.reduction == ReduceOp::preMulSum) {
    operands.scale = scaleKernel(call.type);
    operands.scalar = call.multiplier.value;
    if (call.multiplier.address) std::memcpy(operands.scalar.data(), call.multiplier.address, operands.elementBytes);
  }
  return operands;
}

std::size_t bytesOf(const MemberShape& shape, const Call& call) {
  return call.count * sizeOf(call.type) * blocksOf(shape, call.operation);
}

Status checkCall(const MemberShape& shape, const Call& call) {
  const auto name = [&] { return nameOf(call.operation); };
  if (hasPeer(call.operation) && (call.peer < 0 || call.peer >= shape.size))
    return log::decided(Error::invalidArgument("nccl{}: {} {} is not in the communicator of {} ranks", name(),
                                               isPointToPoint(call.operation) ? "peer" : "root", call.peer,
                                               shape.size));
  constexpr std::size_t limit = std::numeric_limits<std::ptrdiff_t>::max();
  if (call.count > surelyFittingCount && call.count > limit / sizeOf(call.type) / blocksOf(shape, call.operation))
      [[unlikely]]
    return log::decided(Error::invalidArgument("nccl{}: {} elements of {} do not fit into memory", name(), call.count,
                                               nameOf(call.type)));
  return checkBuffers(shape, call);
}

Status checkBuffers(const MemberShape& shape, const Call& call) {
  const auto name = [&] { return nameOf(call.operation); };
  if (call.count > 0 && ((reads(shape, call) && !call.send) || (writes(shape, call) && !call.receive)))
    return log::decided(Error::invalidArgument("nccl{}: a buffer is NULL", name()));
  if (call.operation == Operation::allToAll && call.count > 0 && shape.size > 1 && call.send == call.receive)
    return log::decided(Error::invalidArgument("nccl{}: cannot be done in place; use two buffers", name()));
  return {};
}

std::optional<TaskPlan> planChannel(const MemberShape& shape, const Call& call, const Way& way, int channel,
                                    std::span<const Rank> ring) {
  Geometry geometry = geometryOf(shape, call, ring);
  geometry.channel = channel;
  if (way.algorithm->lane == transport::Lane::direct) geometry.chunk = directChunkOf(shape, call);
  const Range share = partOf({0, call.count}, way.channels, channel, geometry.grain);
  if (share.empty()) return {};
  return TaskPlan{{QueueKey::Kind::channel, channel, -1}, {*way.algorithm, geometry, share}, operandsOf(shape, call)};
}

std::vector<TaskPlan> planCollective(const MemberShape& shape, const Call& call, const Algorithm& algorithm,
                                     int channels, std::span<const Rank> ring) {
  std::vector<TaskPlan> plans;
  plans.reserve(channels);
  for (int channel = 0; channel < channels; ++channel)
    if (auto plan = planChannel(shape, call, {&algorithm, channels}, channel, ring)) plans.push_back(*plan);
  return plans;
}

Way chooseWay(const MemberShape& shape, const Call& call, std::uint8_t preferred, int channels) {
  const std::size_t bytes = bytesOf(shape, call);
  if (channels == 0)
    channels = chooseChannels(bytes, shape.size, shape.fewestChannels, shape.mostChannels, shape.extent);
  return {findAlgorithm(call.operation, bytes, shape.size, preferred, shape.tuning.get(), shape.extent), channels};
}

std::vector<TaskPlan> planCollective(const MemberShape& shape, const Call& call, const Way& way,
                                     std::span<const Rank> ring) {
  if (!way.algorithm) return planExchange(shape, call);
  return planCollective(shape, call, *way.algorithm, way.channels, ring);
}

TaskPlan planMessage(const MemberShape& shape, const Call& call) {
  const Geometry geometry = messageGeometryOf(shape, call, messageChannel, call.peer);
  const bool sending = call.operation == Operation::send;
  return {{sending ? QueueKey::Kind::send : QueueKey::Kind::receive, messageChannel, call.peer},
          {sending ? sendMessage : receiveMessage, geometry, {0, call.count}},
          operandsOf(shape, call)};
}

TaskPlan planOwnMessage(const MemberShape& shape, const Call& send, const Call& receive) {
  Operands operands = operandsOf(shape, send);
  operands.output = static_cast<std::byte*>(receive.receive);
  return {{QueueKey::Kind::copy, messageChannel, shape.rank},
          {localCopy, geometryOf(shape, send, {}), {0, send.count}},
          operands};
}

}  // namespace falcon::collectives
