#include "transport/plugin/net_v9.h"

#include "transport/plugin/net_adapter.h"

namespace falcon::transport::net {
namespace {

class NetV9 final : public NetAdapterBefore11<PluginV9, 9> {
 public:
  using NetAdapterBefore11::NetAdapterBefore11;

  ResultCode init(std::uint64_t, void**) const override { return plugin_.init(logForPlugin); }
  ResultCode getProperties(int device, DeviceProperties& properties) const override {
    return propertiesOf<PropertiesV9>(device, [&](const auto& its) { describeFrom9(its, properties); });
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
  ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const override {
    return plugin_.isend(sendComm, data, size, 0, mhandle, request);
  }
  ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const override {
    int tag = 0;
    return plugin_.irecv(recvComm, 1, &data, &size, &tag, &mhandle, request);
  }
};

}  // namespace

std::unique_ptr<NetCalls> adaptV9(const void* symbol) {
  return std::make_unique<NetV9>(*static_cast<const PluginV9*>(symbol));
}

}  // namespace falcon::transport::net
