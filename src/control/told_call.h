// Which of a thread's calls the vendor's library tells its profiler of: pure. It names neither the communicator's
// handle nor the call's number, and goes through a group's calls in an order of its own.
#pragma once

#include <cstddef>

#include "base/call.h"

namespace falcon::control {

/// What a profiler is told of a call.
struct ToldCall {
  CommunicatorId communicator = 0;  ///< as Falcon calls it; 0: that is not known yet
  Rank rank = -1;                   ///< in it
  int size = 0;                     ///< of it
  Operation operation = Operation::allReduce;
  std::size_t bytes = 0;  ///< and not elements: NCCL tells some calls as ones of bytes
  Rank peer = -1;
};

/// A call that the thread has handed to the vendor.
struct HandedCall {
  CommunicatorId communicator = 0;  ///< 0: it is not watched, or not yet
  Rank rank = -1;
  int size = 0;
  Operation operation = Operation::allReduce;
  std::size_t bytes = 0;
  Rank peer = -1;
  bool told = false;

  /// `call`: a Call, or its record.
  template <class AnyCall>
  static HandedCall of(const AnyCall& call, CommunicatorId communicator, Rank rank, int size, bool told) {
    return {communicator, rank, size, call.operation, call.count * sizeOf(call.type), call.peer, told};
  }
};

/// These NCCL makes of messages, and tells each of them.
constexpr bool consistsOfMessages(Operation operation) {
  return operation == Operation::allToAll || operation == Operation::gather || operation == Operation::scatter;
}

/// The place of the call that is meant; -1: none is, or which communicator's it is cannot be told. What is known of a
/// communicator's name is trusted; without that, calls of one communicator only may be what was told.
/// @param count      how many calls there are
/// @param from       where to begin to look
/// @param hasOthers  the thread has handed over calls of which nothing is known
/// @param factsOf    HandedCall (int place)
template <class FactsOf>
int placeOf(const ToldCall& told, int count, int from, bool hasOthers, FactsOf&& factsOf) {
  constexpr int none = -1, unclear = -2;
  const bool isNamed = told.communicator != 0;
  if (!isNamed && hasOthers) return none;
  const auto look = [&](auto&& isMeant) {
    int found = none;
    for (int step = 0; step < count; ++step) {
      const int place = (from + step) % count;
      const HandedCall each = factsOf(place);
      if (each.rank != told.rank || each.size != told.size || !isMeant(each)) continue;
      if (isNamed) {
        if (each.communicator == told.communicator) return place;
        continue;
      }
      if (each.communicator == 0) return unclear;
      if (found == none) found = place;
      if (factsOf(found).communicator != each.communicator) return unclear;
    }
    return found;
  };
  int place = look([&](const HandedCall& each) {
    return !each.told && each.operation == told.operation && each.bytes == told.bytes &&
           (!hasPeer(told.operation) || each.peer == told.peer);
  });
  if (place == none && (isPointToPoint(told.operation) || consistsOfMessages(told.operation)))
    place = look([](const HandedCall& each) { return consistsOfMessages(each.operation); });
  return place == unclear ? none : place;
}

}  // namespace falcon::control
