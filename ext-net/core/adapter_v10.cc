// Version 10 of NCCL's net plugin interface: traffic classes and the profiler's events: we have neither.
#include "core/adapter.h"
#include "transport/plugin/net_v10.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV9;

ResultCode initV10(Logger logger, ProfilerCallback) {
  return begin(logger);
}

ResultCode propertiesV10(int device, PropertiesV9* to) {
  return describeFrom9(device, to);
}

ResultCode connectToV10(int device, CommConfig*, void* handle, void** sendComm, DeviceHandle**) {
  return connect(device, handle, sendComm);
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV10 ncclNetPlugin_v10;
const falcon::transport::net::PluginV10 ncclNetPlugin_v10 =
    falcon::net::adapter::pluginOf<falcon::transport::net::PluginV10>(
        falcon::net::adapter::initV10, falcon::net::adapter::propertiesV10, falcon::net::adapter::listenBefore11,
        falcon::net::adapter::connectToV10, falcon::net::adapter::isendFrom10, falcon::net::adapter::irecvFrom10);
}
