// Version 12 of NCCL's net plugin interface: rails and planes; we know of none.
#include "core/adapter_from11.h"
#include "transport/plugin/net_v12.h"

namespace falcon::net::adapter {
namespace {

using transport::net::PropertiesV12;

ResultCode propertiesV12(int device, PropertiesV12* to) {
  const ResultCode result = describeFrom9(device, to);
  if (result == ok) to->maxMultiRequestSize = 1;
  if (result == ok) to->railId = to->planeId = transport::net::undefined;
  return result;
}

}  // namespace
}  // namespace falcon::net::adapter

extern "C" {
[[gnu::visibility("default")]] extern const falcon::transport::net::PluginV12 ncclNetPlugin_v12;
const falcon::transport::net::PluginV12 ncclNetPlugin_v12 =
    falcon::net::adapter::pluginFrom11<falcon::transport::net::PluginV12>(falcon::net::adapter::propertiesV12);
}
