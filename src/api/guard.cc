#include "api/guard.h"

namespace falcon::api {

ncclResult_t finish(const Error& error) {
  if (error.code() != ErrorCode::inProgress) log::setLastError(error.message());
  return static_cast<ncclResult_t>(error.code());
}

Status requireOutput(const char* function, const char* name, const void* pointer) {
  if (pointer) return {};
  return log::decided(Error::invalidArgument("{}: {} is NULL", function, name));
}

}  // namespace falcon::api
