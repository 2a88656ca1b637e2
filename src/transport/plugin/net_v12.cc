#include "transport/plugin/net_v12.h"

#include "transport/plugin/net_adapter_from11.h"

namespace falcon::transport::net {

std::unique_ptr<NetCalls> adaptV12(const void* symbol) {
  using NetV12 = NetAdapterFrom11<PropertiesV12, VirtualDeviceV12, 12>;
  return std::make_unique<NetV12>(*static_cast<const PluginV12*>(symbol));
}

}  // namespace falcon::transport::net
