// What the adapters of versions 11 and 12 do alike.
#pragma once

#include "transport/plugin/net_adapter.h"
#include "transport/plugin/net_v11.h"

namespace falcon::transport::net {

/// Contexts belong to communicators.
template <class Properties, class VirtualDevice, int number>
class NetAdapterFrom11 : public NetAdapter<PluginFrom11<Properties, VirtualDevice>, number> {
 public:
  using NetAdapter<PluginFrom11<Properties, VirtualDevice>, number>::NetAdapter;

  ResultCode init(std::uint64_t communicator, void** context) const final {
    CommConfig config{undefined};
    return this->plugin_.init(context, communicator, &config, logForPlugin, ignoreEvent);
  }
  ResultCode getProperties(int device, DeviceProperties& properties) const final {
    return this->template propertiesOf<Properties>(
        device, [&](const Properties& its) { this->describeFrom9(its, properties); });
  }
  ResultCode listen(void* context, int device, void* handle, void** listenComm) const final {
    return this->plugin_.listen(context, device, handle, listenComm);
  }
  ResultCode connect(void* context, int device, void* handle, void** sendComm) const final {
    return this->plugin_.connect(context, device, handle, sendComm, NoDeviceHandle());
  }
  ResultCode accept(void* listenComm, void** recvComm) const final {
    return this->plugin_.accept(listenComm, recvComm, NoDeviceHandle());
  }
  ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const final {
    return this->plugin_.regMr(comm, data, size, hostMemory, mhandle);
  }
  ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const final {
    return this->plugin_.isend(sendComm, data, size, 0, mhandle, nullptr, request);
  }
  ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const final {
    int tag = 0;
    void* event = nullptr;
    return this->plugin_.irecv(recvComm, 1, &data, &size, &tag, &mhandle, &event, request);
  }
  ResultCode finalize(void* context) const final {
    return this->plugin_.finalize ? this->plugin_.finalize(context) : success;
  }
};

}  // namespace falcon::transport::net
