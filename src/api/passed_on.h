// Calls that the GPU engine only passes on to the vendor's library, as they came.
#pragma once

#include "api/communicator.h"
#include "api/group.h"
#include "api/guard.h"
#include "base/log.h"
#include "gpu/vendor_communicator.h"

namespace falcon::api {

/// A communicator whose data the vendor moves, and that is ready.
inline bool isVendors(const ncclComm* comm) {
  return isReady(comm) && comm->vendors;
}

/// For a function without a communicator: `work` gets the vendor's function of that name.
template <class Function, class Work>
ncclResult_t passOn(const char* name, Work&& work) {
  return guarded(name, [&]() -> Status {
    const auto library = Process::instance().deviceLibrary();
    if (!library)
      return log::decided(
          Error::invalidUsage("{}: there is no device in this process, and on host memory it means nothing", name));
    const auto function = library->template find<Function>(name);
    if (!function) return log::decided(library->missing(name));
    const Status done = library->status(work(function), name, nullptr);
    return done ? done : log::decided(done.error());
  });
}

/// For one with a communicator of the vendor's: `work` gets the function, and the vendor's handle. In a group of ours
/// it is called at once, and inside of one of the vendor's.
template <class Function, class Work>
ncclResult_t passOnFor(const char* name, ncclComm_t comm, Work&& work) {
  return guarded(name, [&]() -> Status {
    auto use = requireReady(name, comm);
    if (!use) return use.error();
    const gpu::VendorCommunicator* const engine = (*use)->vendors;
    if (!engine)
      return log::decided(Error::invalidUsage(
          "{}: this communicator moves host memory, where there is no device that could do this", name));
    const ncclComm_t handle = engine->handle();
    if (!handle) return log::decided(Error::invalidUsage("{}: the communicator was aborted", name));
    const auto function = engine->library().template find<Function>(name);
    if (!function) return log::decided(engine->library().missing(name));
    if (const Status begun = Group::ofThisThread().openVendors(Process::instance().deviceLibrary()); !begun)
      return begun;
    const Status done = engine->library().status(work(function, handle), name, handle);
    return done ? done : log::decided(done.error());
  });
}

}  // namespace falcon::api
