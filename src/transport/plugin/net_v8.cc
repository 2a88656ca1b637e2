#include "transport/plugin/net_v8.h"

#include "transport/plugin/net_adapter.h"

namespace falcon::transport::net {
namespace {

class NetV8 final : public NetAdapterBefore9<PluginV8, 8> {
 public:
  using NetAdapterBefore9::NetAdapterBefore9;

  ResultCode getProperties(int device, DeviceProperties& properties) const override {
    return propertiesOf<PropertiesV8>(device, [&](const auto& its) {
      describe(its, properties);
      properties.kind = its.netDeviceType;
    });
  }
  ResultCode connect(void*, int device, void* handle, void** sendComm) const override {
    return plugin_.connect(device, handle, sendComm, NoDeviceHandle());
  }
  ResultCode accept(void* listenComm, void** recvComm) const override {
    return plugin_.accept(listenComm, recvComm, NoDeviceHandle());
  }
  ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const override {
    return plugin_.regMr(comm, data, size, hostMemory, mhandle);
  }
};

}  // namespace

std::unique_ptr<NetCalls> adaptV8(const void* symbol) {
  return std::make_unique<NetV8>(*static_cast<const PluginV8*>(symbol));
}

}  // namespace falcon::transport::net
