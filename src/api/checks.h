// Turns the arguments of an operation into a Call, or says what is wrong with them.
#pragma once

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

/// Fills in `call`, which is fresh: a copy of what was just written in small pieces would take a tenth of the shortest
/// calls. Errors: invalidArgument (type, op, root, peer or a buffer), invalidUsage (the communicator was finalized).
Status checkCall(const char* function, const ncclComm& communicator, const Arguments& arguments, Call& call);

}  // namespace falcon::api
