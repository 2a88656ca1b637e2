// Version 9 of NCCL's net plugin interface: messages of any size, and devices that are made of several: ours are not.
#include "core/adapter.h"
#include "transport/plugin/net_v9.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV9;

ResultCode propertiesV9(int device, PropertiesV9* to) {
  return describeFrom9(device, to);
}

ResultCode isendV9(void* sendComm, void* data, std::size_t size, int, void* mark, void** request) {
  return start(sendComm, data, size, mark, request);
}

ResultCode irecvV9(void* recvComm, int count, void** data, std::size_t* sizes, int*, void** marks, void** request) {
  if (!sizes) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return startReceive(recvComm, count, data, sizes[0], marks, request);
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV9 ncclNetPlugin_v9;
const falcon::transport::net::PluginV9 ncclNetPlugin_v9 =
    falcon::net::adapter::pluginOf<falcon::transport::net::PluginV9>(
        falcon::net::adapter::initBefore10, falcon::net::adapter::propertiesV9, falcon::net::adapter::listenBefore11,
        falcon::net::adapter::connectBefore10, falcon::net::adapter::isendV9, falcon::net::adapter::irecvV9);
}
