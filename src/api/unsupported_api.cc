// nccl.h: what this version refuses, each with ncclInvalidUsage and a reason; arguments are checked all the same.
#include "api/exports.h"

#include "api/communicator.h"
#include "api/group.h"
#include "api/guard.h"
#include "base/log.h"

using namespace falcon;
using namespace falcon::api;

namespace {

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

}  // extern "C"

FALCON_WEAK_TWIN(ncclCommRevoke);
FALCON_WEAK_TWIN(ncclCommShrink);
