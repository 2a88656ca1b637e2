// nccl.h: one-sided messages, windows, encryption. On host memory there are none of the first and the last yet.
#include "api/exports.h"

#include "api/passed_on.h"

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
  const auto known = (*use)->windows.find(function, "window", window);
  if (!known) return known.error();
  *output = const_cast<void*>(known->address);
  return {};
}

}  // namespace

extern "C" {

ncclResult_t pncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                            ncclComm_t comm, cudaStream_t stream) {
  return passOnFor<decltype(ncclPutSignal)>("ncclPutSignal", comm, [&](auto* function, ncclComm_t handle) {
    return function(localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags, handle, stream);
  });
}

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  return passOnFor<decltype(ncclSignal)>("ncclSignal", comm, [&](auto* function, ncclComm_t handle) {
    return function(peer, sigIdx, ctx, flags, handle, stream);
  });
}

ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream) {
  return passOnFor<decltype(ncclWaitSignal)>("ncclWaitSignal", comm, [&](auto* function, ncclComm_t handle) {
    return function(nDesc, signalDescs, handle, stream);
  });
}

// Every window is in our book, whoever registered it.
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
