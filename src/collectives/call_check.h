// NCCL_FALCON_CHECK=1: the ranks tell each other what they are about to call, and compare.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/call_plan.h"

namespace falcon::collectives {

/// What one rank says of a call; travels as it lies in memory, between equal libraries.
struct CallStatement {
  std::uint64_t sequence = 0;  ///< number of the collective, or of the message to or from that peer
  std::uint64_t count = 0;
  std::int32_t peer = -1;  ///< root; unset for messages
  Operation operation = Operation::allReduce;
  DataType type = DataType::f32;
  ReduceOp reduction = ReduceOp::sum;
  std::uint8_t missing = 0;  ///< 1 where it has not come yet
  bool operator==(const CallStatement&) const = default;
};
static_assert(sizeof(CallStatement) == 24);

CallStatement statementOf(const Call& call, std::uint64_t sequence);
/// "ncclReduce of 100 float (sum) to root 2"
std::string describe(const CallStatement& statement);

/// All ranks' statements of one collective, by rank. Errors (invalidUsage): they differ; the text names a rank that
/// does not do what most do, and both calls.
Status compareCollectives(std::span<const CallStatement> statements);
/// Errors (invalidUsage): the message that comes is not the one that is received.
Status compareMessages(Rank sender, const CallStatement& sent, Rank receiver, const CallStatement& received);

/// Whose statement this rank waits for: back along the ring, the first that has not come. Behind that rank others may
/// be missing only because their statements pass through it. -1: all are there.
Rank missingRank(std::span<const CallStatement> statements, std::span<const Rank> ring, Rank self);

/// Gathers one statement of every rank: `statements` has room for all and this rank's in its place.
TaskPlan planStatements(const MemberShape& shape, std::span<const Rank> ring, std::span<CallStatement> statements);
/// Brings the statement of a Send to where its Receive is; goes ahead of the message on its way.
TaskPlan planStatement(const MemberShape& shape, const Call& message, CallStatement& statement);

}  // namespace falcon::collectives
