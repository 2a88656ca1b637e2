// What can be called. Without anything of C++'s library, since the front of the preload library has none of it.
#pragma once

#include <stdint.h>

namespace falcon {

enum class Operation : uint8_t {
  broadcast,
  reduce,
  allGather,
  reduceScatter,
  allReduce,
  send,
  receive,
  allToAll,
  gather,
  scatter
};
inline constexpr int operationCount = 10;

/// Whether its elements are combined.
constexpr bool reduces(Operation operation) {
  return operation == Operation::reduce || operation == Operation::allReduce || operation == Operation::reduceScatter;
}

}  // namespace falcon
