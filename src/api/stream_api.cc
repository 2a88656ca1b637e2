// nccl_falcon.h: host streams.
#include "api/exports.h"

#include "api/guard.h"
#include "api/host_stream.h"
#include "api/process.h"
#include "base/log.h"

using namespace falcon;
using namespace falcon::api;

namespace {

Status create(ncclFalconStream_t* output) {
  if (const Status given = requireOutput("ncclFalconStreamCreate", "stream", output); !given) return given;
  Process::instance();
  auto stream = HostStream::start();
  if (!stream) return stream.error();
  *output = reinterpret_cast<ncclFalconStream_t>(stream->get());
  addStream(std::move(*stream));
  return {};
}

Error notFound(const char* function, const FoundStream& found, const void* handle) {
  return log::decided(Error::invalidArgument(
      "{}: {} {}", function, handle,
      found.kind == FoundStream::Kind::destroyed
          ? "is a host stream that was destroyed"
          : "is no host stream of this process (ncclFalconStreamCreate makes them; a forked child makes its own)"));
}

/// `use` gets the stream that the handle names. On NULL everything is complete when its call returns.
template <class Use>
ncclResult_t withStream(const char* function, ncclFalconStream_t handle, FoundStream (*look)(const void*), Use&& use) {
  return guarded(function, [&]() -> Status {
    if (!handle) return {};
    const FoundStream found = look(handle);
    if (!found.stream) return notFound(function, found, handle);
    return use(*found.stream);
  });
}

Status callBack(ncclFalconStream_t handle, StreamCallback callback) {
  constexpr const char* function = "ncclFalconStreamCallback";
  if (const Status given = requireOutput(function, "callback", reinterpret_cast<const void*>(callback.function));
      !given)
    return given;
  if (!handle) {
    callBack(callback, ncclSuccess);
    return {};
  }
  const FoundStream found = findStream(handle);
  if (!found.stream) return notFound(function, found, handle);
  return found.stream->callBack(callback);
}

}  // namespace

extern "C" {

ncclResult_t ncclFalconStreamCreate(ncclFalconStream_t* stream) {
  return guarded("ncclFalconStreamCreate", [&] { return create(stream); });
}

ncclResult_t ncclFalconStreamSynchronize(ncclFalconStream_t stream) {
  return withStream("ncclFalconStreamSynchronize", stream, findStream,
                    [](HostStream& found) { return found.synchronize(); });
}

ncclResult_t ncclFalconStreamCallback(ncclFalconStream_t stream, ncclFalconStreamCallback_t callback, void* context) {
  return guarded("ncclFalconStreamCallback", [&] { return callBack(stream, {callback, context}); });
}

ncclResult_t ncclFalconStreamQuery(ncclFalconStream_t stream) {
  return withStream("ncclFalconStreamQuery", stream, findStream, [](HostStream& found) { return found.query(); });
}

ncclResult_t ncclFalconStreamDestroy(ncclFalconStream_t stream) {
  return withStream("ncclFalconStreamDestroy", stream, removeStream, [](HostStream& found) -> Status {
    found.end();
    return {};
  });
}

}  // extern "C"
