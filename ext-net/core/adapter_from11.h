// What the adapters of versions 11 and 12 do alike: a context for each communicator, of which we need none: there is
// one network a process.
#pragma once

#include "core/adapter.h"
#include "transport/plugin/net_v11.h"

namespace falcon::net::adapter {

/// Nothing belongs to a communicator, but NCCL wants a context back that is not null.
inline std::byte noContext{};

inline ResultCode init(void** context, std::uint64_t, CommConfig*, Logger logger, ProfilerCallback) {
  if (!context) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  const ResultCode result = begin(logger);
  if (result == ok) *context = &noContext;
  return result;
}

inline ResultCode finalize(void*) {
  return ok;
}

inline ResultCode listenOn(void*, int device, void* handle, void** listenComm) {
  return listen(device, handle, listenComm);
}

inline ResultCode connectTo(void*, int device, void* handle, void** sendComm, DeviceHandle**) {
  return connect(device, handle, sendComm);
}

inline ResultCode isend(void* sendComm, void* data, std::size_t size, int, void* mark, void*, void** request) {
  return start(sendComm, data, size, mark, request);
}

inline ResultCode irecv(void* recvComm, int count, void** data, std::size_t* sizes, int*, void** marks, void**,
                        void** request) {
  if (!sizes) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  return startReceive(recvComm, count, data, sizes[0], marks, request);
}

/// What is planned for a communicator's connections changes nothing.
inline ResultCode setAttributes(void*, transport::net::Attributes*) {
  return ok;
}

/// The members of both versions' structs, but for the two that differ in type.
template <class Plugin, class Properties>
constexpr Plugin pluginFrom11(ResultCode (*properties)(int, Properties*)) {
  return {
      .name = networkName,
      .init = init,
      .devices = devices,
      .getProperties = properties,
      .listen = listenOn,
      .connect = connectTo,
      .accept = acceptOne,
      .regMr = registerMemory,
      .regMrDmaBuf = nullptr,
      .deregMr = deregisterMemory,
      .isend = isend,
      .irecv = irecv,
      .iflush = iflush,
      .test = test,
      .closeSend = closeConnection,
      .closeRecv = closeConnection,
      .closeListen = closeListener,
      .getDeviceMr = nullptr,
      .irecvConsumed = nullptr,
      .makeVDevice = nullptr,
      .finalize = finalize,
      .setNetAttr = setAttributes,
  };
}

}  // namespace falcon::net::adapter
