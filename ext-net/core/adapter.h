// NCCL's calls, whatever their version, as calls of Network: what an adapter of a version (adapter_v8.cc ...) is put
// together from. Here exceptions end, pointers that NCCL must not leave null are looked at, and errors become NCCL's
// result codes.
#pragma once

#include "core/network.h"
#include "core/plugin_log.h"

namespace falcon::net::adapter {

using transport::net::CommConfig;
using transport::net::DeviceHandle;
using transport::net::Logger;
using transport::net::ProfilerCallback;
using transport::net::ResultCode;

inline constexpr ResultCode ok = transport::net::success;
/// Messages longer than this NCCL does not ask for either.
inline constexpr std::size_t longestMessage = std::size_t{1} << 40;

ResultCode begin(Logger logger);
ResultCode devices(int* count);
ResultCode listen(int device, void* handle, void** listenComm);
ResultCode connect(int device, void* handle, void** sendComm);
ResultCode accept(void* listenComm, void** recvComm);
ResultCode registerMemory(void* comm, void* data, std::size_t bytes, int kind, void** mark);
ResultCode registerDmaBuffer(void* comm, void* data, std::size_t bytes, int kind, std::uint64_t offset, int file,
                             void** mark);
ResultCode deregisterMemory(void* comm, void* mark);
ResultCode start(void* comm, void* data, std::size_t bytes, void* mark, void** request);
/// One buffer only: we say that we can no more.
ResultCode startReceive(void* comm, int count, void** data, std::size_t bytes, void** marks, void** request);
/// Of one buffer, as startReceive().
ResultCode flush(void* comm, int count, void** data, const int* sizes, void** marks, void** request);
ResultCode test(void* request, int* done, int* bytes);
ResultCode closeConnection(void* comm);
ResultCode closeListener(void* listenComm);
/// Null, or an error: described as `Device`.
const Device* deviceOf(int number, ResultCode& result);

/// What all versions say of a device.
template <class Properties>
ResultCode describe(int number, Properties* to) {
  if (!to) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  ResultCode result = ok;
  const Device* device = deviceOf(number, result);
  if (!device) return result;
  *to = {};
  // NCCL does not write to them.
  to->name = const_cast<char*>(device->name.c_str());
  to->pciPath = device->pciPath.empty() ? nullptr : const_cast<char*>(device->pciPath.c_str());
  to->guid = device->guid;
  to->ptrSupport = device->memory;
  to->speed = device->speed;
  to->port = device->port;
  to->latency = device->latency;
  to->maxComms = device->connections;
  to->maxRecvs = 1;
  to->netDeviceType = transport::net::hostDevice;
  return ok;
}

/// From version 9 on: devices that are made of several, and messages of any size.
template <class Properties>
ResultCode describeFrom9(int number, Properties* to) {
  if (const ResultCode result = describe(number, to); result != ok) return result;
  to->vProps.ndevs = 1;
  to->vProps.devs[0] = number;
  to->maxP2pBytes = to->maxCollBytes = longestMessage;
  return ok;
}

// As all versions from 8 on have them.
inline ResultCode acceptOne(void* listenComm, void** recvComm, DeviceHandle**) {
  return accept(listenComm, recvComm);
}
inline ResultCode iflush(void* recvComm, int count, void** data, int* sizes, void** marks, void** request) {
  return flush(recvComm, count, data, sizes, marks, request);
}

// As versions 8 to 10 have them: nothing belongs to a communicator.
inline ResultCode listenBefore11(int device, void* handle, void** listenComm) {
  return listen(device, handle, listenComm);
}
inline ResultCode initBefore10(Logger logger) {
  return begin(logger);
}
inline ResultCode connectBefore10(int device, void* handle, void** sendComm, DeviceHandle**) {
  return connect(device, handle, sendComm);
}

// As versions from 10 on have them, with an event for the profiler: we tell of none.
inline ResultCode isendFrom10(void* sendComm, void* data, std::size_t size, int, void* mark, void*, void** request) {
  return start(sendComm, data, size, mark, request);
}
inline ResultCode irecvFrom10(void* recvComm, int count, void** data, std::size_t* sizes, int*, void** marks, void**,
                              void** request) {
  if (!sizes) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return startReceive(recvComm, count, data, sizes[0], marks, request);
}

/// A version's struct: what all have alike, and what differs in type. Other members stay null: we have none of them.
template <class Plugin>
constexpr Plugin pluginOf(decltype(Plugin::init) init, decltype(Plugin::getProperties) getProperties,
                          decltype(Plugin::listen) listen, decltype(Plugin::connect) connect,
                          decltype(Plugin::isend) isend, decltype(Plugin::irecv) irecv) {
  Plugin plugin{};
  plugin.name = networkName;
  plugin.init = init;
  plugin.devices = devices;
  plugin.getProperties = getProperties;
  plugin.listen = listen;
  plugin.connect = connect;
  plugin.accept = acceptOne;
  plugin.regMr = registerMemory;
  plugin.regMrDmaBuf = registerDmaBuffer;
  plugin.deregMr = deregisterMemory;
  plugin.isend = isend;
  plugin.irecv = irecv;
  plugin.iflush = iflush;
  plugin.test = test;
  plugin.closeSend = plugin.closeRecv = closeConnection;
  plugin.closeListen = closeListener;
  return plugin;
}

}  // namespace falcon::net::adapter
