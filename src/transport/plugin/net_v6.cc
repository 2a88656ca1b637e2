#include "transport/plugin/net_v6.h"

#include "transport/plugin/net_adapter.h"

namespace falcon::transport::net {
namespace {

class NetV6 final : public NetAdapterBefore9<PluginV6, 6> {
 public:
  using NetAdapterBefore9::NetAdapterBefore9;

  ResultCode getProperties(int device, DeviceProperties& properties) const override {
    return propertiesOf<PropertiesV6>(device, [&](const auto& its) { describe(its, properties); });
  }
  ResultCode connect(void*, int device, void* handle, void** sendComm) const override {
    return plugin_.connect(device, handle, sendComm);
  }
  ResultCode accept(void* listenComm, void** recvComm) const override { return plugin_.accept(listenComm, recvComm); }
  ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const override {
    if (size > INT_MAX) return internalError;
    return plugin_.regMr(comm, data, static_cast<int>(size), hostMemory, mhandle);
  }
};

}  // namespace

std::unique_ptr<NetCalls> adaptV6(const void* symbol) {
  return std::make_unique<NetV6>(*static_cast<const PluginV6*>(symbol));
}

}  // namespace falcon::transport::net
