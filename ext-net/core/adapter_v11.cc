// Version 11 of NCCL's net plugin interface: a context for each communicator.
#include "core/adapter_from11.h"
#include "transport/plugin/net_v11.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV11;

ResultCode propertiesV11(int device, PropertiesV11* to) {
  const ResultCode result = describeFrom9(device, to);
  if (result == ok) to->maxMultiRequestSize = 1;
  return result;
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV11 ncclNetPlugin_v11;
const falcon::transport::net::PluginV11 ncclNetPlugin_v11 =
    falcon::net::adapter::pluginFrom11<falcon::transport::net::PluginV11>(falcon::net::adapter::propertiesV11);
}
