#include "api/guard.h"

namespace falcon::api {

ncclResult_t finish(const Status& status) {
  if (status) [[likely]]
    return ncclSuccess;
  if (status.error().code() != ErrorCode::inProgress) log::setLastError(status.error().message());
  return static_cast<ncclResult_t>(status.error().code());
}

Error notImplemented(const char* function) {
  return log::decided(Error::invalidUsage("{} is not implemented by this version of NCCL Falcon", function));
}

Status requireOutput(const char* function, const char* name, const void* pointer) {
  if (pointer) return {};
  return log::decided(Error::invalidArgument("{}: {} is NULL", function, name));
}

}  // namespace falcon::api
