#include "api/checks.h"

#include <cstdint>

#include "base/log.h"

namespace falcon::api {
namespace {

/// Buffers that this rank's part does not touch may be anything, NULL too.
struct Touched {
  bool send = true;
  bool receive = true;
};
Touched touchedBy(Operation operation, bool isRoot) {
  switch (operation) {
    case Operation::broadcast:
    case Operation::scatter:
      return {isRoot, true};
    case Operation::reduce:
    case Operation::gather:
      return {true, isRoot};
    case Operation::send:
      return {true, false};
    case Operation::receive:
      return {false, true};
    default:
      return {};
  }
}

const char* nameOf(ncclComm::Closed closed) {
  switch (closed) {
    case ncclComm::Closed::revoked:
      return "was revoked";
    case ncclComm::Closed::suspended:
      return "is suspended: call ncclCommResume first";
    default:
      return "was finalized";
  }
}

Status refuseDevicePointers(const char* function, const ncclComm& communicator, const Call& call) {
  for (const void* pointer : {call.send, static_cast<const void*>(call.receive), call.multiplier.address})
    if (pointer && communicator.driver->memoryOf(pointer) == gpu::MemoryKind::device)
      return log::decided(
          Error::invalidArgument("{}: {} is device memory, but this communicator moves host memory "
                                 "(NCCL_FALCON_ENGINE=vendor moves device "
                                 "memory)",
                                 function, pointer));
  return {};
}

}  // namespace

Status checkSettings(const char* function, const ncclComm& communicator, const CallSettings& settings) {
  return settings && communicator.host ? checkForHost(function, settings->get()) : Status();
}

Status checkOpen(const char* function, const ncclComm& communicator) {
  const auto closed = communicator.closed.load(std::memory_order_relaxed);
  if (closed == ncclComm::Closed::no) [[likely]]
    return {};
  return log::decided(Error::invalidUsage("{}: comm {}", function, nameOf(closed)));
}

Status checkOpenOrRevoked(const char* function, const ncclComm& communicator) {
  if (communicator.closed.load(std::memory_order_relaxed) == ncclComm::Closed::revoked) return {};
  return checkOpen(function, communicator);
}

Status checkCall(const char* function, const ncclComm& communicator, const Arguments& arguments, Call& call) {
  const auto& a = arguments;
  const Engine& engine = *communicator.engine;
  if (const Status open = checkOpen(function, communicator); !open) return open;
  // As unsigned, so that one comparison covers both ends.
  if (static_cast<unsigned>(a.type) >= dataTypeCount) [[unlikely]]
    return log::decided(Error::invalidArgument("{}: {} is no data type", function, static_cast<int>(a.type)));
  const auto type = static_cast<DataType>(a.type);
  call.reduction = static_cast<ReduceOp>(a.reduction);
  if (static_cast<unsigned>(a.reduction) >= reduceOpCount) [[unlikely]] {
    const auto op = communicator.userOps.find(function, a.reduction, type);
    if (!op) return op.error();
    call.reduction = op->reduction;
    call.multiplier = op->multiplier;
  }
  if (hasPeer(a.operation) && (a.peer < 0 || a.peer >= engine.size())) [[unlikely]]
    return log::decided(Error::invalidArgument("{}: {} is {}, not 0 to {}", function,
                                               isPointToPoint(a.operation) ? "peer" : "root", a.peer,
                                               engine.size() - 1));
  if (a.count > surelyFittingCount && a.count > PTRDIFF_MAX / sizeOf(type) / engine.size()) [[unlikely]]
    return log::decided(Error::invalidArgument("{}: {} elements do not fit into memory", function, a.count));
  const Touched touched = touchedBy(a.operation, a.peer == engine.rank());
  if (a.count > 0 && ((touched.send && !a.send) || (touched.receive && !a.receive))) [[unlikely]]
    return log::decided(
        Error::invalidArgument("{}: {} is NULL", function, touched.send && !a.send ? "sendbuff" : "recvbuff"));
  call.operation = a.operation;
  call.type = type;
  call.send = a.send;
  call.receive = a.receive;
  call.count = a.count;
  call.peer = a.peer;
  return communicator.driver ? refuseDevicePointers(function, communicator, call) : Status();
}

}  // namespace falcon::api
