// The vendor's function of an operation, and how it is called: they differ by the arguments that an operation has.
#pragma once

#include <cstddef>

#include "base/operation.h"
#include "gpu/vendor_library.h"

namespace falcon::gpu {

/// Null: that library has none.
template <Operation operation>
auto functionOf(const VendorFunctions& functions) {
  if constexpr (operation == Operation::allReduce) return functions.allReduce;
  if constexpr (operation == Operation::broadcast) return functions.broadcast;
  if constexpr (operation == Operation::reduce) return functions.reduce;
  if constexpr (operation == Operation::allGather) return functions.allGather;
  if constexpr (operation == Operation::reduceScatter) return functions.reduceScatter;
  if constexpr (operation == Operation::send) return functions.send;
  if constexpr (operation == Operation::receive) return functions.receive;
  if constexpr (operation == Operation::allToAll) return functions.allToAll;
  if constexpr (operation == Operation::gather) return functions.gather;
  if constexpr (operation == Operation::scatter) return functions.scatter;
}

/// Arguments that the operation has no use for may be anything. `peer`: its root, or its peer.
template <Operation operation, class Function>
ncclResult_t callStraight(Function* function, const void* send, void* receive, std::size_t count, ncclDataType_t type,
                          ncclRedOp_t op, int peer, ncclComm_t communicator, cudaStream_t stream) {
  if constexpr (operation == Operation::send)
    return function(send, count, type, peer, communicator, stream);
  else if constexpr (operation == Operation::receive)
    return function(receive, count, type, peer, communicator, stream);
  else if constexpr (operation == Operation::reduce)
    return function(send, receive, count, type, op, peer, communicator, stream);
  else if constexpr (operation == Operation::allReduce || operation == Operation::reduceScatter)
    return function(send, receive, count, type, op, communicator, stream);
  else if constexpr (operation == Operation::allGather || operation == Operation::allToAll)
    return function(send, receive, count, type, communicator, stream);
  else
    return function(send, receive, count, type, peer, communicator, stream);
}

}  // namespace falcon::gpu
