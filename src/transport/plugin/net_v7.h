// Version 7 of NCCL's net plugin interface: connections whose data the GPU moves.
#pragma once

#include "transport/plugin/net_abi.h"

namespace falcon::transport::net {

struct PropertiesV7 {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

struct PluginV7 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*getProperties)(int device, PropertiesV7* properties);
  ResultCode (*listen)(int device, void* handle, void** listenComm);
  ResultCode (*connect)(int device, void* handle, void** sendComm, DeviceHandle** sendDeviceComm);
  ResultCode (*accept)(void* listenComm, void** recvComm, DeviceHandle** recvDeviceComm);
  ResultCode (*regMr)(void* comm, void* data, int size, int type, void** mhandle);
  ResultCode (*regMrDmaBuf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int file,
                            void** mhandle);
  ResultCode (*deregMr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* sendComm, void* data, int size, int tag, void* mhandle, void** request);
  ResultCode (*irecv)(void* recvComm, int count, void** data, int* sizes, int* tags, void** mhandles, void** request);
  ResultCode (*iflush)(void* recvComm, int count, void** data, int* sizes, void** mhandles, void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*closeSend)(void* sendComm);
  ResultCode (*closeRecv)(void* recvComm);
  ResultCode (*closeListen)(void* listenComm);
  ResultCode (*getDeviceMr)(void* comm, void* mhandle, void** deviceMhandle);
  ResultCode (*irecvConsumed)(void* recvComm, int count, void* request);
};

}  // namespace falcon::transport::net
