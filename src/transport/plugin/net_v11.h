// Version 11 of NCCL's net plugin interface: a context for each communicator.
#pragma once

#include "transport/plugin/net_v9.h"

namespace falcon::transport::net {

struct PropertiesV11 {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  VirtualDeviceV9 vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
  int maxMultiRequestSize;
};

struct CommAttributes {
  std::int32_t maxConcurrentPeers;
  std::int32_t minConcurrentPeers;
  std::int32_t maxFlowsPerPeer;
  std::int32_t minFlowsPerPeer;
};

struct Attributes {
  CommAttributes send;
  CommAttributes receive;
  std::uint32_t operation;
  std::uint32_t algorithm;
  std::uint32_t protocol;
};

/// Versions 11 and 12 differ in what they say of a device only.
template <class Properties, class VirtualDevice>
struct PluginFrom11 {
  const char* name;
  ResultCode (*init)(void** context, std::uint64_t communicator, CommConfig* config, Logger logger,
                     ProfilerCallback profiler);
  ResultCode (*devices)(int* count);
  ResultCode (*getProperties)(int device, Properties* properties);
  ResultCode (*listen)(void* context, int device, void* handle, void** listenComm);
  ResultCode (*connect)(void* context, int device, void* handle, void** sendComm, DeviceHandle** sendDeviceComm);
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
  ResultCode (*makeVDevice)(int* device, VirtualDevice* properties);
  ResultCode (*finalize)(void* context);
  ResultCode (*setNetAttr)(void* context, Attributes* attributes);
};

using PluginV11 = PluginFrom11<PropertiesV11, VirtualDeviceV9>;

}  // namespace falcon::transport::net
