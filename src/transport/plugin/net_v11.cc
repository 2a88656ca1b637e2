#include "transport/plugin/net_v11.h"

#include "transport/plugin/net_adapter_from11.h"

namespace falcon::transport::net {

std::unique_ptr<NetCalls> adaptV11(const void* symbol) {
  using NetV11 = NetAdapterFrom11<PropertiesV11, VirtualDeviceV9, 11>;
  return std::make_unique<NetV11>(*static_cast<const PluginV11*>(symbol));
}

}  // namespace falcon::transport::net
