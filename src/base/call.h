// What an application asked for: one call of the API, as it is executed, logged and matched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/data_type.h"
#include "base/operation.h"
#include "base/types.h"

namespace falcon {

/// "AllReduce", "Send" ... as in NCCL's function names.
const char* nameOf(Operation operation);
constexpr bool isPointToPoint(Operation operation) {
  return operation == Operation::send || operation == Operation::receive;
}
/// Whether it names a root or a peer.
constexpr bool hasPeer(Operation operation) {
  constexpr auto bit = [](Operation each) { return 1U << static_cast<unsigned>(each); };
  constexpr unsigned those = bit(Operation::broadcast) | bit(Operation::reduce) | bit(Operation::gather) |
                             bit(Operation::scatter) | bit(Operation::send) | bit(Operation::receive);
  return those >> static_cast<unsigned>(operation) & 1;
}
/// So many elements fit into memory, of any type and times any number of ranks: two divisions, which tell it exactly,
/// take as long as the rest of a call's checks.
inline constexpr std::size_t surelyFittingCount = PTRDIFF_MAX >> 32;

/// What a rank multiplies its input by before a preMulSum; every rank may have another one. Of the call's type.
struct PreMultiplier {
  std::array<std::byte, 8> value{};
  const void* address = nullptr;  ///< not null: `value` is read from there when the operation runs
  int engineOp = -1;              ///< the engine's own number of the op; -1: it has none
};

/// One operation with its buffers. `count` is what the API function takes: per-rank elements for AllGather (sent) and
/// ReduceScatter (received), all elements otherwise.
struct Call {
  Operation operation = Operation::allReduce;
  DataType type = DataType::f32;
  ReduceOp reduction = ReduceOp::sum;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  /// Root of Broadcast, Reduce, Gather, Scatter; peer of Send, Recv; -1 otherwise. A rank of the communicator.
  Rank peer = -1;
  PreMultiplier multiplier;  ///< of preMulSum
};

/// One call as the call log keeps it: what was asked without the buffers' addresses, and when.
/// Times are of the process's steady clock. Between `enter` and `leave` the calling thread was inside the library.
struct CallRecord {
  CommunicatorId communicator = 0;
  Operation operation = Operation::allReduce;
  DataType type = DataType::f32;
  ReduceOp reduction = ReduceOp::sum;
  bool grouped = false;  ///< made in a group with others, which all have the same times
  std::int32_t peer = -1;
  std::uint64_t count = 0;
  /// Number of this call among the communicator's collectives, or among the sends/receives with this peer; from 0.
  std::uint64_t sequence = 0;
  Nanoseconds enter{0};
  Nanoseconds leave{0};
  Rank rank = -1;            ///< of the caller, in the communicator; -1: not known
  std::uint32_t thread = 0;  ///< the kernel's number of the calling thread

  static CallRecord of(const Call& call, CommunicatorId communicator, Rank rank, std::uint64_t sequence, bool grouped,
                       Nanoseconds enter) {
    return {communicator, call.operation, call.type, call.reduction, grouped,
            call.peer,    call.count,     sequence,  enter,          {},
            rank};
  }
};

/// What the application says about a call, for people and tools to find it by.
struct CallLabels {
  static constexpr std::int32_t none = -1;
  std::uint64_t tag = 0;  ///< ncclCollConfig_t.userProfilerTag; 0: none
  std::int64_t iteration = none;
  std::int32_t phase = none, group = none;  ///< numbers whose meaning is the program's

  bool empty() const { return *this == CallLabels(); }
  bool operator==(const CallLabels&) const = default;
};

/// A call as others refer to it, and its labels.
struct LabelledCall {
  CommunicatorId communicator = 0;
  std::uint64_t sequence = 0;
  Operation operation = Operation::allReduce;
  std::int32_t peer = -1;
  Rank rank = -1;
  CallLabels labels;

  static LabelledCall of(const CallRecord& call, const CallLabels& labels) {
    return {call.communicator, call.sequence, call.operation, call.peer, call.rank, labels};
  }
  bool operator==(const LabelledCall&) const = default;
};

}  // namespace falcon
