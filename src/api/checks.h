// Turns the arguments of an operation into a Call, or says what is wrong with them.
#pragma once

#include <cstddef>

#include "api/call_settings.h"
#include "api/communicator.h"
#include "base/call.h"

namespace falcon::api {

/// The arguments as they came. `peer`: root or peer, -1 where the operation has none.
struct Arguments {
  Operation operation;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  const void* send;
  void* receive;
  size_t count;
  int peer;
};

/// Whether a glance shows that checkCall() would object to nothing, as nearly always. `communicator` is ready.
inline bool areSoundAtAGlance(const ncclComm& communicator, const Arguments& a) {
  return communicator.closed.load(std::memory_order_relaxed) == ncclComm::Closed::no &&
         static_cast<unsigned>(a.type) < dataTypeCount && static_cast<unsigned>(a.reduction) < reduceOpCount &&
         a.count <= surelyFittingCount &&
         (!hasPeer(a.operation) || static_cast<unsigned>(a.peer) < communicator.ranks) &&
         (a.send || a.operation == Operation::receive) && (a.receive || a.operation == Operation::send);
}
/// Fills in `call`, which is fresh, from such.
inline void fillIn(Call& call, const Arguments& a) {
  call.operation = a.operation;
  call.type = static_cast<DataType>(a.type);
  call.reduction = static_cast<ReduceOp>(a.reduction);
  call.send = a.send;
  call.receive = a.receive;
  call.count = a.count;
  call.peer = a.peer;
}

/// Error (invalidUsage): the communicator was finalized or revoked, or is suspended.
Status checkOpen(const char* function, const ncclComm& communicator);
/// The same of what may be done with one that was revoked: others are made of it, memory is registered.
Status checkOpenOrRevoked(const char* function, const ncclComm& communicator);

/// Whether settings of this call alone can be followed, where the host engine has to. Errors (invalidUsage).
Status checkSettings(const char* function, const ncclComm& communicator, const CallSettings& settings);

/// Fills in `call`, which is fresh: a copy of what was just written in small pieces would take a tenth of the shortest
/// calls. Errors: invalidArgument (type, op, root, peer or a buffer, device memory where host memory is moved),
/// invalidUsage (the communicator was finalized).
Status checkCall(const char* function, const ncclComm& communicator, const Arguments& arguments, Call& call);

}  // namespace falcon::api
