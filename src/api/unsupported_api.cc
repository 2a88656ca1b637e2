// nccl.h: what this version refuses, each with ncclInvalidUsage and a reason; arguments are checked all the same.
#include "api/exports.h"

#include "api/communicator.h"
#include "api/group.h"
#include "api/guard.h"
#include "base/log.h"

using namespace falcon;
using namespace falcon::api;

namespace {

ncclResult_t refuse(const char* function) {
  return guarded(function, [&]() -> Status { return notImplemented(function); });
}

ncclResult_t refuseFor(const char* function, ncclComm_t comm) {
  return guarded(function, [&]() -> Status {
    const auto use = requireReady(function, comm);
    return use ? notImplemented(function) : use.error();
  });
}

}  // namespace

extern "C" {

ncclResult_t pncclCommRevoke(ncclComm_t comm, int) {
  return comm ? refuseFor("ncclCommRevoke", comm) : ncclSuccess;
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int*, int, ncclComm_t*, ncclConfig_t*, int) {
  return refuseFor("ncclCommShrink", comm);
}

ncclResult_t pncclMemAlloc(void**, size_t) {
  return refuse("ncclMemAlloc");
}
ncclResult_t pncclMemFree(void*) {
  return refuse("ncclMemFree");
}
ncclResult_t pncclCommRegister(const ncclComm_t comm, void*, size_t, void**) {
  return refuseFor("ncclCommRegister", comm);
}
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void*) {
  return refuseFor("ncclCommDeregister", comm);
}
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void*, size_t, ncclWindow_t*, int) {
  return refuseFor("ncclCommWindowRegister", comm);
}
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  return refuseFor("ncclCommWindowDeregister", comm);
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t*) {
  return refuse("ncclGroupSimulateEnd");
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclCommRevoke);
FALCON_WEAK_TWIN(ncclCommShrink);
FALCON_WEAK_TWIN(ncclMemAlloc);
FALCON_WEAK_TWIN(ncclMemFree);
FALCON_WEAK_TWIN(ncclCommRegister);
FALCON_WEAK_TWIN(ncclCommDeregister);
FALCON_WEAK_TWIN(ncclCommWindowRegister);
FALCON_WEAK_TWIN(ncclCommWindowDeregister);
FALCON_WEAK_TWIN(ncclGroupSimulateEnd);
