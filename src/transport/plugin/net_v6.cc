#include "transport/plugin/net_v6.h"

#include "transport/plugin/net_adapter.h"

namespace falcon::transport::net {
namespace {

class NetV6 final : public NetAdapterBefore11<PluginV6, 6> {
 public:
  using NetAdapterBefore11::NetAdapterBefore11;

  ResultCode init(std::uint64_t, void**) const override { return plugin_.init(logForPlugin); }
  ResultCode getProperties(int device, DeviceProperties& properties) const override {
    PropertiesV6 its{};
    const ResultCode result = plugin_.getProperties(device, &its);
    if (result != success) return result;
    describe(its, properties);
    return success;
  }
  ResultCode connect(void*, int device, void* handle, void** sendComm) const override {
    return plugin_.connect(device, handle, sendComm);
  }
  ResultCode accept(void* listenComm, void** recvComm) const override { return plugin_.accept(listenComm, recvComm); }
  ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const override {
    if (size > INT_MAX) return internalError;
    return plugin_.regMr(comm, data, static_cast<int>(size), hostMemory, mhandle);
  }
  ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const override {
    if (size > longestMessageBefore9) return internalError;
    return plugin_.isend(sendComm, data, static_cast<int>(size), 0, mhandle, request);
  }
  ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const override {
    if (size > longestMessageBefore9) return internalError;
    int length = static_cast<int>(size), tag = 0;
    return plugin_.irecv(recvComm, 1, &data, &length, &tag, &mhandle, request);
  }
};

}  // namespace

std::unique_ptr<NetCalls> adaptV6(const void* symbol) {
  return std::make_unique<NetV6>(*static_cast<const PluginV6*>(symbol));
}

}  // namespace falcon::transport::net
