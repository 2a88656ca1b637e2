// Version 8 of NCCL's net plugin interface: messages of at most 2 GiB.
#include "core/adapter.h"
#include "transport/plugin/net_v8.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV8;

ResultCode init(Logger logger) {
  return begin(logger);
}

ResultCode properties(int device, PropertiesV8* to) {
  return describe(device, to);
}

ResultCode listenOn(int device, void* handle, void** listenComm) {
  return listen(device, handle, listenComm);
}

ResultCode connectTo(int device, void* handle, void** sendComm, DeviceHandle**) {
  return connect(device, handle, sendComm);
}

ResultCode isend(void* sendComm, void* data, int size, int, void* mark, void** request) {
  if (size < 0) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return start(sendComm, data, static_cast<std::size_t>(size), mark, request);
}

ResultCode irecv(void* recvComm, int count, void** data, int* sizes, int*, void** marks, void** request) {
  if (!sizes || sizes[0] < 0) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return startReceive(recvComm, count, data, static_cast<std::size_t>(sizes[0]), marks, request);
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV8 ncclNetPlugin_v8;
const falcon::transport::net::PluginV8 ncclNetPlugin_v8 = {
    .name = falcon::net::networkName,
    .init = falcon::net::adapter::init,
    .devices = falcon::net::adapter::devices,
    .getProperties = falcon::net::adapter::properties,
    .listen = falcon::net::adapter::listenOn,
    .connect = falcon::net::adapter::connectTo,
    .accept = falcon::net::adapter::acceptOne,
    .regMr = falcon::net::adapter::registerMemory,
    .regMrDmaBuf = nullptr,
    .deregMr = falcon::net::adapter::deregisterMemory,
    .isend = falcon::net::adapter::isend,
    .irecv = falcon::net::adapter::irecv,
    .iflush = falcon::net::adapter::iflush,
    .test = falcon::net::adapter::test,
    .closeSend = falcon::net::adapter::closeConnection,
    .closeRecv = falcon::net::adapter::closeConnection,
    .closeListen = falcon::net::adapter::closeListener,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
};
}
