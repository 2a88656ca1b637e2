#include "transport/plugin/net_v10.h"

#include "transport/plugin/net_adapter.h"

namespace falcon::transport::net {
namespace {

class NetV10 final : public NetAdapterBefore11<PluginV10, 10> {
 public:
  using NetAdapterBefore11::NetAdapterBefore11;

  ResultCode init(std::uint64_t, void**) const override { return plugin_.init(logForPlugin, ignoreEvent); }
  ResultCode getProperties(int device, DeviceProperties& properties) const override {
    return propertiesOf<PropertiesV9>(device, [&](const auto& its) { describeFrom9(its, properties); });
  }
  ResultCode connect(void*, int device, void* handle, void** sendComm) const override {
    CommConfig config{undefined};
    return plugin_.connect(device, &config, handle, sendComm, NoDeviceHandle());
  }
  ResultCode accept(void* listenComm, void** recvComm) const override {
    return plugin_.accept(listenComm, recvComm, NoDeviceHandle());
  }
  ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const override {
    return plugin_.regMr(comm, data, size, hostMemory, mhandle);
  }
  ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const override {
    return plugin_.isend(sendComm, data, size, 0, mhandle, nullptr, request);
  }
  ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const override {
    int tag = 0;
    void* event = nullptr;
    return plugin_.irecv(recvComm, 1, &data, &size, &tag, &mhandle, &event, request);
  }
};

}  // namespace

std::unique_ptr<NetCalls> adaptV10(const void* symbol) {
  return std::make_unique<NetV10>(*static_cast<const PluginV10*>(symbol));
}

}  // namespace falcon::transport::net
