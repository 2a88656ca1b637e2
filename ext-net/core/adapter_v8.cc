// Version 8 of NCCL's net plugin interface: messages of at most 2 GiB.
#include "core/adapter.h"
#include "transport/plugin/net_v8.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV8;

ResultCode propertiesV8(int device, PropertiesV8* to) {
  return describe(device, to);
}

ResultCode isendV8(void* sendComm, void* data, int size, int, void* mark, void** request) {
  if (size < 0) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return start(sendComm, data, static_cast<std::size_t>(size), mark, request);
}

ResultCode irecvV8(void* recvComm, int count, void** data, int* sizes, int*, void** marks, void** request) {
  if (!sizes || sizes[0] < 0) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return startReceive(recvComm, count, data, static_cast<std::size_t>(sizes[0]), marks, request);
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV8 ncclNetPlugin_v8;
const falcon::transport::net::PluginV8 ncclNetPlugin_v8 =
    falcon::net::adapter::pluginOf<falcon::transport::net::PluginV8>(
        falcon::net::adapter::initBefore10, falcon::net::adapter::propertiesV8, falcon::net::adapter::listenBefore11,
        falcon::net::adapter::connectBefore10, falcon::net::adapter::isendV8, falcon::net::adapter::irecvV8);
}
