// Version 10 of NCCL's net plugin interface: traffic classes and the profiler's events: we have neither.
#include "core/adapter.h"
#include "transport/plugin/net_v10.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV9;

ResultCode init(Logger logger, ProfilerCallback) {
  return begin(logger);
}

ResultCode properties(int device, PropertiesV9* to) {
  return describeFrom9(device, to);
}

ResultCode listenOn(int device, void* handle, void** listenComm) {
  return listen(device, handle, listenComm);
}

ResultCode connectTo(int device, CommConfig*, void* handle, void** sendComm, DeviceHandle**) {
  return connect(device, handle, sendComm);
}

ResultCode isend(void* sendComm, void* data, std::size_t size, int, void* mark, void*, void** request) {
  return start(sendComm, data, size, mark, request);
}

ResultCode irecv(void* recvComm, int count, void** data, std::size_t* sizes, int*, void** marks, void**,
                 void** request) {
  if (!sizes) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return startReceive(recvComm, count, data, sizes[0], marks, request);
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV10 ncclNetPlugin_v10;
const falcon::transport::net::PluginV10 ncclNetPlugin_v10 = {
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
    .makeVDevice = nullptr,
};
}
