// nccl.h: memory and its registration.
#include "api/exports.h"

#include "api/checks.h"
#include "api/communicator.h"
#include "api/group.h"
#include "api/guard.h"
#include "api/host_memory.h"
#include "api/passed_on.h"
#include "api/process.h"
#include "api/vendors_own_call.h"
#include "base/log.h"
#include "collectives/registrations.h"

using namespace falcon;
using namespace falcon::api;

namespace {

static_assert(collectives::symmetricWindow == NCCL_WIN_COLL_SYMMETRIC && NCCL_WIN_DEFAULT == 0 &&
              collectives::windowAlignment == NCCL_WIN_REQUIRED_ALIGNMENT);

Status allocate(void** output, size_t size) {
  constexpr const char* function = "ncclMemAlloc";
  if (const Status given = requireOutput(function, "ptr", output); !given) return given;
  *output = nullptr;
  if (size == 0) return {};
  if (const auto library = Process::instance().deviceLibrary()) {
    if (!library->functions.memAlloc) return log::decided(library->missing(function));
    const Status done = library->status(library->functions.memAlloc(output, size), function, nullptr);
    return done ? done : log::decided(done.error());
  }
  const auto memory = allocateHostMemory(size);
  if (!memory) return memory.error();
  *output = *memory;
  return {};
}

Status release(void* address) {
  constexpr const char* function = "ncclMemFree";
  if (!address || freeHostMemory(address)) return {};
  if (const auto library = Process::instance().deviceLibrary()) {
    if (!library->functions.memFree) return log::decided(library->missing(function));
    const Status done = library->status(library->functions.memFree(address), function, nullptr);
    return done ? done : log::decided(done.error());
  }
  return log::decided(
      Error::invalidArgument("{}: {} did not come from ncclMemAlloc, or was freed before", function, address));
}

Status checkBuffer(const char* function, const void* buffer, size_t size) {
  if (const Status given = requireOutput(function, "buff", buffer); !given) return given;
  if (size == 0) return log::decided(Error::invalidArgument("{}: size is 0", function));
  if (size > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(buffer))
    return log::decided(Error::invalidArgument("{}: {} bytes do not fit into memory", function, size));
  return {};
}

Status registerBuffer(ncclComm_t comm, void* buffer, size_t size, void** handle) {
  constexpr const char* function = "ncclCommRegister";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "handle", handle); !given) return given;
  if (const Status open = checkOpenOrRevoked(function, **use); !open) return open;
  if (const Status sound = checkBuffer(function, buffer, size); !sound) return sound;
  const auto made = (*use)->engine->registerBuffer(buffer, size);
  if (!made) return made.error();
  *handle = *made;
  return {};
}

Status deregisterBuffer(ncclComm_t comm, void* handle) {
  constexpr const char* function = "ncclCommDeregister";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (!handle) return {};
  return (*use)->engine->deregisterBuffer(handle);
}

Status registerWindow(ncclComm_t comm, void* buffer, size_t size, ncclWindow_t* window, int flags) {
  constexpr const char* function = "ncclCommWindowRegister";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status open = checkOpenOrRevoked(function, **use); !open) return open;
  Status sound = requireOutput(function, "win", window);
  if (sound) sound = checkBuffer(function, buffer, size);
  if (!sound) {
    if ((*use)->host) (*use)->host->missWindow();
    return sound;
  }
  const auto made = (*use)->engine->registerWindow(buffer, size, flags);
  if (!made) return made.error();
  *window = static_cast<ncclWindow_t>(*made);
  return {};
}

Status deregisterWindow(ncclComm_t comm, ncclWindow_t window) {
  constexpr const char* function = "ncclCommWindowDeregister";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (!window) return {};
  return (*use)->engine->deregisterWindow(window);
}

}  // namespace

extern "C" {

ncclResult_t pncclMemAlloc(void** ptr, size_t size) {
  FALCON_LET_VENDORS_OWN_PASS(ncclMemAlloc, ptr, size)
  return guarded("ncclMemAlloc", [&] { return allocate(ptr, size); });
}

ncclResult_t pncclMemFree(void* ptr) {
  FALCON_LET_VENDORS_OWN_PASS(ncclMemFree, ptr)
  return guarded("ncclMemFree", [&] { return release(ptr); });
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  FALCON_LET_VENDORS_OWN_PASS(ncclCommRegister, comm, buff, size, handle)
  return guarded("ncclCommRegister", [&] { return registerBuffer(comm, buff, size, handle); });
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle) {
  FALCON_LET_VENDORS_OWN_PASS(ncclCommDeregister, comm, handle)
  return guarded("ncclCommDeregister", [&] { return deregisterBuffer(comm, handle); });
}

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  // The vendor's fills it in when the group ends, or the communicator is nonblocking: it has to be the caller's own.
  if (isVendors(comm))
    return passOnFor<decltype(ncclCommWindowRegister)>(
        "ncclCommWindowRegister", comm,
        [&](auto* function, ncclComm_t handle) { return function(handle, buff, size, win, winFlags); });
  return guarded("ncclCommWindowRegister", [&] { return registerWindow(comm, buff, size, win, winFlags); });
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  FALCON_LET_VENDORS_OWN_PASS(ncclCommWindowDeregister, comm, win)
  return guarded("ncclCommWindowDeregister", [&] { return deregisterWindow(comm, win); });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclMemAlloc);
FALCON_WEAK_TWIN(ncclMemFree);
FALCON_WEAK_TWIN(ncclCommRegister);
FALCON_WEAK_TWIN(ncclCommDeregister);
FALCON_WEAK_TWIN(ncclCommWindowRegister);
FALCON_WEAK_TWIN(ncclCommWindowDeregister);
