// Version 10 of NCCL's net plugin interface: traffic classes, and events for NCCL's profiler.
#pragma once

#include "transport/plugin/net_v9.h"

namespace falcon::transport::net {

struct PluginV10 {
  const char* name;
  ResultCode (*init)(Logger logger, ProfilerCallback profiler);
  ResultCode (*devices)(int* count);
  ResultCode (*getProperties)(int device, PropertiesV9* properties);
  ResultCode (*listen)(int device, void* handle, void** listenComm);
  ResultCode (*connect)(int device, CommConfig* config, void* handle, void** sendComm, DeviceHandle** sendDeviceComm);
  ResultCode (*accept)(void* listenComm, void** recvComm, DeviceHandle** recvDeviceComm);
  ResultCode (*regMr)(void* comm, void* data, std::size_t size, int type, void** mhandle);
  ResultCode (*regMrDmaBuf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int file,
                            void** mhandle);
  ResultCode (*deregMr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* sendComm, void* data, std::size_t size, int tag, void* mhandle, void* event,
                      void** request);
  ResultCode (*irecv)(void* recvComm, int count, void** data, std::size_t* sizes, int* tags, void** mhandles,
                      void** events, void** request);
  ResultCode (*iflush)(void* recvComm, int count, void** data, int* sizes, void** mhandles, void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*closeSend)(void* sendComm);
  ResultCode (*closeRecv)(void* recvComm);
  ResultCode (*closeListen)(void* listenComm);
  ResultCode (*getDeviceMr)(void* comm, void* mhandle, void** deviceMhandle);
  ResultCode (*irecvConsumed)(void* recvComm, int count, void* request);
  ResultCode (*makeVDevice)(int* device, VirtualDeviceV9* properties);
};

}  // namespace falcon::transport::net
