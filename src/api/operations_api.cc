// nccl.h: collectives, messages and groups.
#include "api/exports.h"

#include "api/checks.h"
#include "api/group.h"
#include "api/guard.h"
#include "api/host_stream.h"
#include "api/vendors_own_call.h"
#include "base/log.h"
#include "gpu/straight_call.h"

using namespace falcon;
using namespace falcon::api;

namespace {

/// What is alike in all operations: check, then run or collect.
ncclResult_t submitChecked(const char* function, const Arguments& arguments, ncclComm_t comm, cudaStream_t stream,
                           bool ready) {
  return guarded(function, [&]() -> Status {
    Group& group = Group::ofThisThread();
    Call call;
    if (ready && comm->plain && !stream && areSoundAtAGlance(*comm, arguments)) [[likely]] {
      fillIn(call, arguments);
      if (group.open()) {
        if (group.collectPlain(*comm, call)) return {};
      } else if (const PlainUse use(*comm); use) [[likely]] {
        return runPlain(*comm, call);
      }
    }
    auto use = requireReady(function, comm);
    if (!use) return group.noted(use.error());
    if (const Status sound = checkCall(function, **use, arguments, call); !sound) return group.noted(sound);
    return group.noted(group.submit(function, std::move(*use), call, stream));
  });
}

[[gnu::noinline]] ncclResult_t tellFailure(const char* function, const gpu::VendorCommunicator& vendors,
                                           ncclResult_t result, ncclComm_t handle) {
  return guarded(function, [&] { return vendors.told(result, function, handle); });
}

/// What is not to be called from here after all: the library lacks the function, or the communicator was aborted. It is
/// in use.
[[gnu::noinline]] ncclResult_t runByEngine(const char* function, const Arguments& arguments, ncclComm& communicator,
                                           cudaStream_t stream) {
  return guarded(function, [&] {
    PendingCall pending;
    pending.communicator = &communicator;
    pending.stream = stream;
    fillIn(pending.call, arguments);
    return runNow({&pending, 1});
  });
}

/// Apart, and with arguments of its own, so that those of a call that nobody watches stay in registers. The
/// communicator is in use.
template <Operation operation, class Function>
[[gnu::noinline]] ncclResult_t callWatched(const char* function, const Arguments& a, ncclComm& communicator,
                                           cudaStream_t stream, Function* theirs) {
  gpu::VendorCommunicator& vendors = *communicator.vendors;
  PendingCall pending;
  pending.communicator = &communicator;
  pending.stream = stream;
  fillIn(pending.call, a);
  WatchedCall watched(pending);
  // Not before: while this thread was held another one may have aborted the communicator.
  const ncclComm_t handle = vendors.handle();
  if (!handle) [[unlikely]]
    return guarded(function, [&] { return gpu::VendorCommunicator::wasAborted(function); });
  gpu::VendorCommunicator::Launch launch(vendors, stream);
  const ncclResult_t result =
      gpu::callStraight<operation>(theirs, a.send, a.receive, a.count, a.type, a.reduction, a.peer, handle, stream);
  launch.made();
  if (result != ncclSuccess) [[unlikely]]
    return tellFailure(function, vendors, result, handle);
  vendors.count(operation);
  watched.leave();
  return result;
}

/// What goes to the vendor's engine outside of groups, with nothing to be said about it, is called from here.
template <Operation operation>
[[gnu::always_inline]] inline ncclResult_t submit(const char* function, const Arguments a, ncclComm_t comm,
                                                  cudaStream_t stream) {
  bool ready = isReady(comm);
  if (ready && comm->direct && areSoundAtAGlance(*comm, a) && !wereAnyStreams() && !Group::isOpenHere()) {
    if (const PlainUse use(*comm); use) [[likely]] {
      const gpu::VendorCommunicator& vendors = *comm->vendors;
      const auto theirs = gpu::functionOf<operation>(vendors.library().functions);
      if (comm->watched && theirs) return callWatched<operation>(function, Arguments(a), *comm, stream, theirs);
      const ncclComm_t handle = vendors.handle();
      if (!theirs || !handle) [[unlikely]]
        return runByEngine(function, Arguments(a), *comm, stream);
      const ncclResult_t result =
          gpu::callStraight<operation>(theirs, a.send, a.receive, a.count, a.type, a.reduction, a.peer, handle, stream);
      if (result == ncclSuccess) [[likely]]
        return result;
      return tellFailure(function, vendors, result, handle);
    }
    ready = false;
  }
  return submitChecked(function, Arguments(a), comm, stream, ready);
}

/// The same for a collective with settings of its own.
ncclResult_t submitWith(const char* function, const Arguments& arguments, ncclComm_t comm, cudaStream_t stream,
                        const ncclCollConfig_t* config) {
  return guarded(function, [&]() -> Status {
    Group& group = Group::ofThisThread();
    auto settings = readCallSettings(function, config);
    if (!settings) return group.noted(settings.error());
    auto use = requireReady(function, comm);
    if (!use) return group.noted(use.error());
    Call call;
    if (const Status sound = checkCall(function, **use, arguments, call); !sound) return group.noted(sound);
    if (const Status possible = checkSettings(function, **use, *settings); !possible) return group.noted(possible);
    return group.noted(group.submit(function, std::move(*use), call, stream, std::move(*settings)));
  });
}

Status simulateEnd(ncclSimInfo_t* info) {
  constexpr const char* function = "ncclGroupSimulateEnd";
  constexpr ncclSimInfo_t fresh = NCCL_SIM_INFO_INITIALIZER;
  // The group ends whatever was given: later calls must not be collected for an end that nobody expects.
  const auto time = Group::ofThisThread().simulateEnd();
  if (const Status given = requireOutput(function, "simInfo", info); !given) return given;
  if (info->magic != fresh.magic || info->size < sizeof(ncclSimInfo_t))
    return log::decided(
        Error::invalidArgument("{}: simInfo was not initialized: start from NCCL_SIM_INFO_INITIALIZER", function));
  if (!time) return time.error();
  if (*time) info->estimatedTime = **time;
  return {};
}

}  // namespace

extern "C" {

ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
  return submit<Operation::allReduce>(
      "ncclAllReduce", {Operation::allReduce, datatype, op, sendbuff, recvbuff, count, -1}, comm, stream);
}

ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream) {
  FALCON_LET_VENDORS_OWN_PASS(ncclBroadcast, sendbuff, recvbuff, count, datatype, root, comm, stream)
  return submit<Operation::broadcast>(
      "ncclBroadcast", {Operation::broadcast, datatype, ncclSum, sendbuff, recvbuff, count, root}, comm, stream);
}

ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return submit<Operation::broadcast>("ncclBcast", {Operation::broadcast, datatype, ncclSum, buff, buff, count, root},
                                      comm, stream);
}

ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return submit<Operation::reduce>("ncclReduce", {Operation::reduce, datatype, op, sendbuff, recvbuff, count, root},
                                   comm, stream);
}

ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream) {
  return submit<Operation::allGather>(
      "ncclAllGather", {Operation::allGather, datatype, ncclSum, sendbuff, recvbuff, sendcount, -1}, comm, stream);
}

ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit<Operation::reduceScatter>(
      "ncclReduceScatter", {Operation::reduceScatter, datatype, op, sendbuff, recvbuff, recvcount, -1}, comm, stream);
}

ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit<Operation::allToAll>(
      "ncclAlltoAll", {Operation::allToAll, datatype, ncclSum, sendbuff, recvbuff, count, -1}, comm, stream);
}

ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return submit<Operation::gather>(
      "ncclGather", {Operation::gather, datatype, ncclSum, sendbuff, recvbuff, count, root}, comm, stream);
}

ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                          ncclComm_t comm, cudaStream_t stream) {
  return submit<Operation::scatter>(
      "ncclScatter", {Operation::scatter, datatype, ncclSum, sendbuff, recvbuff, count, root}, comm, stream);
}

ncclResult_t pncclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t* config) {
  return submitWith("ncclAllReduceConfig", {Operation::allReduce, datatype, op, sendbuff, recvbuff, count, -1}, comm,
                    stream, config);
}

ncclResult_t pncclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return submitWith("ncclBroadcastConfig", {Operation::broadcast, datatype, ncclSum, sendbuff, recvbuff, count, root},
                    comm, stream, config);
}

ncclResult_t pncclReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t* config) {
  return submitWith("ncclReduceConfig", {Operation::reduce, datatype, op, sendbuff, recvbuff, count, root}, comm,
                    stream, config);
}

ncclResult_t pncclAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return submitWith("ncclAllGatherConfig", {Operation::allGather, datatype, ncclSum, sendbuff, recvbuff, sendcount, -1},
                    comm, stream, config);
}

ncclResult_t pncclReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                      const ncclCollConfig_t* config) {
  return submitWith("ncclReduceScatterConfig",
                    {Operation::reduceScatter, datatype, op, sendbuff, recvbuff, recvcount, -1}, comm, stream, config);
}

ncclResult_t pncclAlltoAllConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return submitWith("ncclAlltoAllConfig", {Operation::allToAll, datatype, ncclSum, sendbuff, recvbuff, count, -1}, comm,
                    stream, config);
}

ncclResult_t pncclGatherConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return submitWith("ncclGatherConfig", {Operation::gather, datatype, ncclSum, sendbuff, recvbuff, count, root}, comm,
                    stream, config);
}

ncclResult_t pncclScatterConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return submitWith("ncclScatterConfig", {Operation::scatter, datatype, ncclSum, sendbuff, recvbuff, count, root}, comm,
                    stream, config);
}

ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return submit<Operation::send>("ncclSend", {Operation::send, datatype, ncclSum, sendbuff, nullptr, count, peer}, comm,
                                 stream);
}

ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return submit<Operation::receive>("ncclRecv", {Operation::receive, datatype, ncclSum, nullptr, recvbuff, count, peer},
                                    comm, stream);
}

ncclResult_t pncclGroupStart(void) {
  FALCON_LET_VENDORS_OWN_PASS(ncclGroupStart)
  return guarded("ncclGroupStart", []() -> Status {
    Group::ofThisThread().start();
    return {};
  });
}

ncclResult_t pncclGroupEnd(void) {
  FALCON_LET_VENDORS_OWN_PASS(ncclGroupEnd)
  return guarded("ncclGroupEnd", [] { return Group::ofThisThread().end(); });
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return guarded("ncclGroupSimulateEnd", [&] { return simulateEnd(simInfo); });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclAllReduce);
FALCON_WEAK_TWIN(ncclBroadcast);
FALCON_WEAK_TWIN(ncclBcast);
FALCON_WEAK_TWIN(ncclReduce);
FALCON_WEAK_TWIN(ncclAllGather);
FALCON_WEAK_TWIN(ncclReduceScatter);
FALCON_WEAK_TWIN(ncclAlltoAll);
FALCON_WEAK_TWIN(ncclGather);
FALCON_WEAK_TWIN(ncclScatter);
FALCON_WEAK_TWIN(ncclSend);
FALCON_WEAK_TWIN(ncclRecv);
FALCON_WEAK_TWIN(ncclGroupStart);
FALCON_WEAK_TWIN(ncclGroupEnd);
FALCON_WEAK_TWIN(ncclGroupSimulateEnd);
FALCON_WEAK_TWIN(ncclAllReduceConfig);
FALCON_WEAK_TWIN(ncclBroadcastConfig);
FALCON_WEAK_TWIN(ncclReduceConfig);
FALCON_WEAK_TWIN(ncclAllGatherConfig);
FALCON_WEAK_TWIN(ncclReduceScatterConfig);
FALCON_WEAK_TWIN(ncclAlltoAllConfig);
FALCON_WEAK_TWIN(ncclGatherConfig);
FALCON_WEAK_TWIN(ncclScatterConfig);
