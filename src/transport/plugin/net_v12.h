// Version 12 of NCCL's net plugin interface: rails and planes, and devices made of up to eight.
#pragma once

#include "transport/plugin/net_v11.h"

namespace falcon::transport::net {

struct VirtualDeviceV12 {
  int ndevs;
  int devs[8];
};

struct PropertiesV12 {
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
  VirtualDeviceV12 vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
  int maxMultiRequestSize;
  std::int16_t railId;
  std::int16_t planeId;
};

using PluginV12 = PluginFrom11<PropertiesV12, VirtualDeviceV12>;

}  // namespace falcon::transport::net
