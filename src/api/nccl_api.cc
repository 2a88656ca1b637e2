// nccl.h: versions, errors, and the making of communicators.
#include "api/exports.h"

#include "api/group.h"
#include "api/guard.h"
#include "api/process.h"
#include "api/setup.h"
#include "api/vendors_own_call.h"
#include "base/log.h"

using namespace falcon;
using namespace falcon::api;

namespace {

Status initAll(ncclComm_t* outputs, int count, const int* devices) {
  constexpr const char* function = "ncclCommInitAll";
  if (const Status given = requireOutput(function, "comm", outputs); !given) return given;
  if (count < 1) return log::decided(Error::invalidArgument("{}: ndev is {}, not 1 or more", function, count));
  for (int i = 0; devices && i < count; ++i) {
    if (devices[i] < 0) return log::decided(Error::invalidArgument("{}: devlist[{}] is {}", function, i, devices[i]));
    for (int j = 0; j < i; ++j)
      if (devices[i] == devices[j])
        return log::decided(Error::invalidUsage("{}: device {} is listed twice", function, devices[i]));
  }
  const auto id = newUniqueIdOfProcess();
  if (!id) return id.error();
  Group& group = Group::ofThisThread();
  group.start();
  for (int i = 0; i < count; ++i)
    (void)group.noted(
        startRank(function, &outputs[i], count, std::span(&*id, 1), i, nullptr, devices ? devices[i] : i));
  return group.end();
}

/// One number of a communicator.
template <class Ask>
ncclResult_t ask(const char* function, ncclComm_t communicator, int* output, Ask&& ask) {
  return guarded(function, [&]() -> Status {
    auto use = requireReady(function, communicator);
    if (!use) return use.error();
    if (const Status given = requireOutput(function, "its output", output); !given) return given;
    *output = ask(*(*use)->engine);
    return {};
  });
}

/// Ours, and the vendor's where its library is in use; `function` is both's name.
void resetLogging(const char* function) {
  log::reset();
  (void)guarded(function, [&]() -> Status {
    const auto library = Process::instance().vendorLibrary();
    if (const auto theirs = library ? library->find<void()>(function) : nullptr) theirs();
    return {};
  });
}

}  // namespace

extern "C" {

ncclResult_t pncclGetVersion(int* version) {
  FALCON_LET_VENDORS_OWN_PASS(ncclGetVersion, version)
  return guarded("ncclGetVersion", [&]() -> Status {
    if (const Status given = requireOutput("ncclGetVersion", "version", version); !given) return given;
    // Programs ask before anything else, and go by it: the vendor's library is looked for now.
    const auto vendor = Process::instance().likelyLibrary();
    *version = vendor ? vendor->version : NCCL_VERSION_CODE;
    return {};
  });
}

ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId) {
  FALCON_LET_VENDORS_OWN_PASS(ncclGetUniqueId, uniqueId)
  return guarded("ncclGetUniqueId", [&]() -> Status {
    if (const Status given = requireOutput("ncclGetUniqueId", "uniqueId", uniqueId); !given) return given;
    const auto id = newUniqueId();
    if (!id) return id.error();
    *uniqueId = *id;
    return {};
  });
}

ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return guarded("ncclCommInitRank", [&] {
    return Group::ofThisThread().noted(
        startRank("ncclCommInitRank", comm, nranks, std::span(&commId, 1), rank, nullptr));
  });
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config) {
  return guarded("ncclCommInitRankConfig", [&] {
    return Group::ofThisThread().noted(
        startRank("ncclCommInitRankConfig", comm, nranks, std::span(&commId, 1), rank, config));
  });
}

// Every rank gets the same list of ids.
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                       ncclConfig_t* config) {
  constexpr const char* function = "ncclCommInitRankScalable";
  return guarded(function, [&]() -> Status {
    Group& group = Group::ofThisThread();
    if (const Status given = requireOutput(function, "commIds", commIds); !given) return group.noted(given);
    if (nId < 1 || nId > nranks)
      return group.noted(
          log::decided(Error::invalidArgument("{}: nId is {}, not 1 to nranks ({})", function, nId, nranks)));
    return group.noted(
        startRank(function, newcomm, nranks, std::span(commIds, static_cast<std::size_t>(nId)), myrank, config));
  });
}

ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded("ncclCommInitAll", [&] { return Group::ofThisThread().noted(initAll(comm, ndev, devlist)); });
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  return ask("ncclCommCount", comm, count, [](const Engine& engine) { return engine.size(); });
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  return ask("ncclCommCuDevice", comm, device, [](const Engine& engine) { return engine.device(); });
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  return ask("ncclCommUserRank", comm, rank, [](const Engine& engine) { return engine.rank(); });
}

const char* pncclGetErrorString(ncclResult_t result) {
  FALCON_LET_VENDORS_OWN_PASS(ncclGetErrorString, result)
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "CUDA error (NCCL_DEBUG=INFO tells more)";
    case ncclSystemError:
      return "system error (NCCL_DEBUG=INFO tells more)";
    case ncclInternalError:
      return "internal error (NCCL_DEBUG=WARN tells which)";
    case ncclInvalidArgument:
      return "invalid argument (NCCL_DEBUG=WARN tells which)";
    case ncclInvalidUsage:
      return "invalid usage (NCCL_DEBUG=WARN tells which)";
    case ncclRemoteError:
      return "a remote rank ended or cannot be reached";
    case ncclInProgress:
      return "operation in progress";
    case ncclTimeout:
      return "time ran out on the device";
    default:
      return "unknown result code";
  }
}

const char* pncclGetLastError(ncclComm_t) {
  return log::lastError();
}

void pncclResetDebugInit(void) {
  resetLogging("ncclResetDebugInit");
}

/// In no header: what the vendor's ncclResetDebugInit calls, and programs of its own.
__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void) {
  resetLogging("ncclResetDebugInitInternal");
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclGetVersion);
FALCON_WEAK_TWIN(ncclGetUniqueId);
FALCON_WEAK_TWIN(ncclCommInitRank);
FALCON_WEAK_TWIN(ncclCommInitRankConfig);
FALCON_WEAK_TWIN(ncclCommInitRankScalable);
FALCON_WEAK_TWIN(ncclCommInitAll);
FALCON_WEAK_TWIN(ncclCommCount);
FALCON_WEAK_TWIN(ncclCommCuDevice);
FALCON_WEAK_TWIN(ncclCommUserRank);
FALCON_WEAK_TWIN(ncclGetErrorString);
FALCON_WEAK_TWIN(ncclGetLastError);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
FALCON_WEAK_TWIN(ncclResetDebugInit);
#pragma GCC diagnostic pop
