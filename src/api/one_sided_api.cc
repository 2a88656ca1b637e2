// nccl.h: one-sided messages, the address of a window, encryption.
#include "api/exports.h"

#include "api/checks.h"
#include "api/group.h"
#include "api/one_sided.h"
#include "api/passed_on.h"
#include "api/queued_calls.h"

using namespace falcon;
using namespace falcon::api;

namespace {

Status userPointer(ncclComm_t comm, ncclWindow_t window, void** output) {
  constexpr const char* function = "ncclWinGetUserPtr";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "outUserPtr", output); !given) return given;
  *output = nullptr;
  if (!window) return {};
  const auto address = (*use)->engine->addressOf(window);
  if (!address) return address.error();
  *output = *address;
  return {};
}

/// What is alike in the three: `fill` checks the arguments and says in the work what is to be done.
template <class Fill>
ncclResult_t submitOneSided(const char* function, ncclComm_t comm, cudaStream_t stream, Fill&& fill) {
  return guarded(function, [&]() -> Status {
    Group& group = Group::ofThisThread();
    auto use = requireReady(function, comm);
    if (!use) return group.noted(use.error());
    if (const Status open = checkOpen(function, *comm); !open) return group.noted(open);
    OneSidedWork work;
    work.function = function;
    if (const Status sound = fill(work); !sound) return group.noted(sound);
    if (stream) {
      auto hostStream = streamFor(function, *comm, stream);
      if (!hostStream) return group.noted(hostStream.error());
      work.hostStream = std::move(*hostStream);
    }
    work.use = std::make_shared<CommunicatorUse>(std::move(*use));
    return group.noted(group.submit(std::move(work)));
  });
}

Status checkPeer(const char* function, const ncclComm& communicator, int peer) {
  const int ranks = communicator.engine->size();
  if (peer >= 0 && peer < ranks) return {};
  return log::decided(Error::invalidArgument("{}: peer is {}, not 0 to {}", function, peer, ranks - 1));
}

Result<int> kindOf(const char* function, int index, int context) {
  if (index < 0 || index >= transport::signalIndices)
    return log::decided(
        Error::invalidArgument("{}: sigIdx is {}, not 0 to {}", function, index, transport::signalIndices - 1));
  if (context < 0 || context >= transport::signalContexts)
    return log::decided(
        Error::invalidArgument("{}: ctx is {}, not 0 to {}", function, context, transport::signalContexts - 1));
  return collectives::signalKind(index, context);
}

/// What a message has in common, whether it carries data or not.
Status fillMessage(const char* function, const ncclComm& communicator, int peer, int index, int context,
                   unsigned int flags, OneSidedWork& work) {
  if (const Status sound = checkPeer(function, communicator, peer); !sound) return sound;
  const auto kind = kindOf(function, index, context);
  if (!kind) return kind.error();
  if (flags != 0)
    return log::decided(Error::invalidArgument("{}: flags is {:#x}, which means nothing; pass 0", function, flags));
  work.message.peer = peer;
  work.message.kind = *kind;
  return {};
}

struct PutArguments {
  const void* from;
  size_t count;
  ncclDataType_t type;
  ncclWindow_t window;
  size_t offset;
};
Status fillPut(const char* function, const ncclComm& communicator, const PutArguments& put, OneSidedWork& work) {
  if (static_cast<unsigned>(put.type) >= dataTypeCount)
    return log::decided(Error::invalidArgument("{}: {} is no data type", function, static_cast<int>(put.type)));
  const size_t elementBytes = sizeOf(static_cast<DataType>(put.type));
  if (put.count > PTRDIFF_MAX / elementBytes)
    return log::decided(Error::invalidArgument("{}: {} elements do not fit into memory", function, put.count));
  if (put.count > 0 && !put.from) return log::decided(Error::invalidArgument("{}: localbuff is NULL", function));
  if (!put.window) return log::decided(Error::invalidArgument("{}: peerWin is NULL", function));
  const auto window = communicator.host->numberOf(function, put.window);
  if (!window) return window.error();
  work.message.from = put.from;
  work.message.bytes = put.count * elementBytes;
  work.message.window = *window;
  work.message.offset = put.offset;
  return {};
}

Status fillWait(const char* function, const ncclComm& communicator, int count, const ncclWaitSignalDesc_t* signals,
                OneSidedWork& work) {
  if (count < 1) return log::decided(Error::invalidArgument("{}: nDesc is {}, below 1", function, count));
  if (!signals) return log::decided(Error::invalidArgument("{}: signalDescs is NULL", function));
  work.waits = true;
  for (const ncclWaitSignalDesc_t& signal : std::span(signals, static_cast<size_t>(count))) {
    if (signal.opCnt < 1)
      return log::decided(Error::invalidArgument("{}: opCnt is {}, below 1", function, signal.opCnt));
    if (const Status sound = checkPeer(function, communicator, signal.peer); !sound) return sound;
    const auto kind = kindOf(function, signal.sigIdx, signal.ctx);
    if (!kind) return kind.error();
    work.signals.push_back({signal.peer, *kind, static_cast<std::uint64_t>(signal.opCnt)});
  }
  return {};
}

}  // namespace

extern "C" {

ncclResult_t pncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                            ncclComm_t comm, cudaStream_t stream) {
  constexpr const char* name = "ncclPutSignal";
  if (isVendors(comm))
    return passOnFor<decltype(ncclPutSignal)>(name, comm, [&](auto* function, ncclComm_t handle) {
      return function(localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags, handle, stream);
    });
  return submitOneSided(name, comm, stream, [&](OneSidedWork& work) -> Status {
    if (const Status sound = fillMessage(name, *comm, peer, sigIdx, ctx, flags, work); !sound) return sound;
    return fillPut(name, *comm, {localbuff, count, datatype, peerWin, peerWinOffset}, work);
  });
}

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  constexpr const char* name = "ncclSignal";
  if (isVendors(comm))
    return passOnFor<decltype(ncclSignal)>(name, comm, [&](auto* function, ncclComm_t handle) {
      return function(peer, sigIdx, ctx, flags, handle, stream);
    });
  return submitOneSided(name, comm, stream,
                        [&](OneSidedWork& work) { return fillMessage(name, *comm, peer, sigIdx, ctx, flags, work); });
}

ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream) {
  constexpr const char* name = "ncclWaitSignal";
  if (isVendors(comm))
    return passOnFor<decltype(ncclWaitSignal)>(
        name, comm, [&](auto* function, ncclComm_t handle) { return function(nDesc, signalDescs, handle, stream); });
  return submitOneSided(name, comm, stream,
                        [&](OneSidedWork& work) { return fillWait(name, *comm, nDesc, signalDescs, work); });
}

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return guarded("ncclWinGetUserPtr", [&] { return userPointer(comm, win, outUserPtr); });
}

ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t* config) {
  return passOn<decltype(ncclSetEncryption)>("ncclSetEncryption", [&](auto* function) { return function(config); });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclPutSignal);
FALCON_WEAK_TWIN(ncclSignal);
FALCON_WEAK_TWIN(ncclWaitSignal);
FALCON_WEAK_TWIN(ncclWinGetUserPtr);
FALCON_WEAK_TWIN(ncclSetEncryption);
