// What the adapters of all versions do alike.
#pragma once

#include <climits>
#include <iterator>

#include "plugin/plugin_log.h"
#include "transport/plugin/net_calls.h"

namespace falcon::transport::net {

using plugin::logForPlugin;

/// Events of a plugin's own, which nobody here wants.
inline ResultCode ignoreEvent(void** event, int, void*, std::int64_t, void*) {
  if (event) *event = nullptr;
  return success;
}

/// @tparam Plugin  the version's struct; it lives as long as the library that it was found in
template <class Plugin, int number>
class NetAdapter : public NetCalls {
 public:
  explicit NetAdapter(const Plugin& plugin) : plugin_(plugin) {}

  int version() const final { return number; }
  const char* name() const final { return plugin_.name; }
  bool hasContexts() const final { return number >= 11; }
  std::vector<const char*> missing() const final {
    std::vector<const char*> missing;
    const auto need = [&](const char* member, bool there) {
      if (!there) missing.push_back(member);
    };
    need("name", plugin_.name != nullptr);
    need("init", plugin_.init != nullptr);
    need("devices", plugin_.devices != nullptr);
    need("getProperties", plugin_.getProperties != nullptr);
    need("listen", plugin_.listen != nullptr);
    need("connect", plugin_.connect != nullptr);
    need("accept", plugin_.accept != nullptr);
    need("regMr", plugin_.regMr != nullptr);
    need("deregMr", plugin_.deregMr != nullptr);
    need("isend", plugin_.isend != nullptr);
    need("irecv", plugin_.irecv != nullptr);
    need("test", plugin_.test != nullptr);
    need("closeSend", plugin_.closeSend != nullptr);
    need("closeRecv", plugin_.closeRecv != nullptr);
    need("closeListen", plugin_.closeListen != nullptr);
    return missing;
  }

  ResultCode devices(int* count) const final { return plugin_.devices(count); }
  ResultCode deregMr(void* comm, void* mhandle) const final { return plugin_.deregMr(comm, mhandle); }
  ResultCode test(void* request, int* done, int* size) const final { return plugin_.test(request, done, size); }
  ResultCode closeSend(void* sendComm) const final { return plugin_.closeSend(sendComm); }
  ResultCode closeRecv(void* recvComm) const final { return plugin_.closeRecv(recvComm); }
  ResultCode closeListen(void* listenComm) const final { return plugin_.closeListen(listenComm); }

 protected:
  /// What every version says of a device.
  template <class Properties>
  static void describe(const Properties& from, DeviceProperties& to) {
    to.name = from.name;
    to.memory = from.ptrSupport;
    to.speed = from.speed;
    to.connections = from.maxComms;
    to.receives = from.maxRecvs;
    to.longestMessage = longestMessageBefore9;
  }
  /// What versions from 9 on say of it too.
  template <class Properties>
  static void describeFrom9(const Properties& from, DeviceProperties& to) {
    describe(from, to);
    to.kind = from.netDeviceType;
    to.parts = from.vProps.ndevs;
    to.mostParts = static_cast<int>(std::size(from.vProps.devs));
    to.longestMessage = from.maxP2pBytes;
  }

  /// Asks for a device's properties as this version has them, and for what `describe` makes of them.
  template <class Properties, class Describe>
  ResultCode propertiesOf(int device, const Describe& describe) const {
    Properties its{};
    const ResultCode result = plugin_.getProperties(device, &its);
    if (result == success) describe(its);
    return result;
  }

  const Plugin& plugin_;
};

/// Before version 11 nothing belongs to a communicator.
template <class Plugin, int number>
class NetAdapterBefore11 : public NetAdapter<Plugin, number> {
 public:
  using NetAdapter<Plugin, number>::NetAdapter;

  ResultCode listen(void*, int device, void* handle, void** listenComm) const final {
    return this->plugin_.listen(device, handle, listenComm);
  }
  ResultCode finalize(void*) const final { return success; }
};

/// Before version 9 the length of a message is an int.
template <class Plugin, int number>
class NetAdapterBefore9 : public NetAdapterBefore11<Plugin, number> {
 public:
  using NetAdapterBefore11<Plugin, number>::NetAdapterBefore11;

  ResultCode init(std::uint64_t, void**) const final { return this->plugin_.init(logForPlugin); }
  ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const final {
    if (size > longestMessageBefore9) return internalError;
    return this->plugin_.isend(sendComm, data, static_cast<int>(size), 0, mhandle, request);
  }
  ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const final {
    if (size > longestMessageBefore9) return internalError;
    int length = static_cast<int>(size), tag = 0;
    return this->plugin_.irecv(recvComm, 1, &data, &length, &tag, &mhandle, request);
  }
};

/// From version 7 on a connection may be moved by the GPU, where who connects asks for it: nobody does here.
struct NoDeviceHandle {
  DeviceHandle* none = nullptr;
  operator DeviceHandle**() { return &none; }
};

}  // namespace falcon::transport::net
