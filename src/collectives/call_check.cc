#include "collectives/call_check.h"

#include <algorithm>

#include "base/log.h"

namespace falcon::collectives {
namespace {

// Beside those of messages and of exchanges (call_plan.cc).
constexpr int checkChannel = 2;

/// A ring all-gather that does not meet the collectives' own.
const Algorithm& gatherStatements() {
  static const Algorithm algorithm{"check", transport::Lane::peerToPeer, ringAllGather.elementsPerRound,
                                   ringAllGather.appendRound};
  return algorithm;
}

bool hasRoot(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather ||
         operation == Operation::scatter;
}
Geometry bytesOf(const MemberShape& shape) {
  Geometry geometry;
  geometry.rank = shape.rank;
  geometry.size = shape.size;
  geometry.count = sizeof(CallStatement);
  geometry.chunk = shape.chunkBytes;
  return geometry;
}

}  // namespace

CallStatement statementOf(const Call& call, std::uint64_t sequence) {
  CallStatement statement;
  statement.sequence = sequence;
  statement.count = call.count;
  if (hasRoot(call.operation)) statement.peer = call.peer;
  statement.operation = call.operation;
  statement.type = call.type;
  if (reduces(call.operation)) statement.reduction = call.reduction;
  return statement;
}

std::string describe(const CallStatement& statement) {
  std::string text =
      fmt::format("nccl{} of {} {}", nameOf(statement.operation), statement.count, nameOf(statement.type));
  if (reduces(statement.operation)) text += fmt::format(" ({})", nameOf(statement.reduction));
  if (hasRoot(statement.operation)) text += fmt::format(" with root {}", statement.peer);
  return text;
}

Status compareCollectives(std::span<const CallStatement> statements) {
  std::size_t usual = 0;
  std::ptrdiff_t most = 0;
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    const auto alike = std::count(statements.begin(), statements.end(), statements[rank]);
    if (alike <= most) continue;
    most = alike;
    usual = rank;
  }
  const auto other = std::find_if(statements.begin(), statements.end(),
                                  [&](const CallStatement& statement) { return !(statement == statements[usual]); });
  if (other == statements.end()) return {};
  return log::decided(Error::invalidUsage(
      "the ranks' calls differ: collective {} of the communicator is {} on rank {}, but {} on rank {}",
      statements[usual].sequence, describe(*other), other - statements.begin(), describe(statements[usual]), usual));
}

Status compareMessages(Rank sender, const CallStatement& sent, Rank receiver, const CallStatement& received) {
  if (sent.count == received.count && sent.type == received.type) return {};
  return log::decided(Error::invalidUsage(
      "the ranks' calls differ: message {} from rank {} to rank {} is sent by {}, but received by {}",
      received.sequence, sender, receiver, describe(sent), describe(received)));
}

Rank missingRank(std::span<const CallStatement> statements, std::span<const Rank> ring, Rank self) {
  const std::size_t size = ring.size();
  const auto own = static_cast<std::size_t>(std::find(ring.begin(), ring.end(), self) - ring.begin());
  for (std::size_t distance = 1; distance < size; ++distance) {
    const Rank rank = ring[(own + size - distance) % size];
    if (statements[rank].missing) return rank;
  }
  return -1;
}

TaskPlan planStatements(const MemberShape& shape, std::span<const Rank> ring, std::span<CallStatement> statements) {
  Geometry geometry = bytesOf(shape);
  geometry.ring = ring;
  geometry.channel = checkChannel;
  Operands operands;
  operands.input = reinterpret_cast<const std::byte*>(&statements[static_cast<std::size_t>(shape.rank)]);
  operands.output = reinterpret_cast<std::byte*>(statements.data());
  // A queue of their own: no collective has channel -1.
  return {{QueueKey::Kind::channel, -1, -1}, {gatherStatements(), geometry, {0, sizeof(CallStatement)}}, operands};
}

TaskPlan planStatement(const MemberShape& shape, const Call& message, CallStatement& statement) {
  Call bytes = message;
  bytes.type = DataType::u8;
  bytes.count = sizeof(CallStatement);
  bytes.send = &statement;
  bytes.receive = &statement;
  return planMessage(shape, bytes);
}

}  // namespace falcon::collectives
