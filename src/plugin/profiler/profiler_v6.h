// Version 6 of NCCL's profiler plugin interface (2.29): collectives by the copy engine.
#pragma once

#include "plugin/profiler/profiler_v5.h"

namespace falcon::plugin {

struct CopyEngineV6 {
  std::uint64_t number;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  const char* syncStrategy;
  bool syncsInBatch;
  std::uint32_t batchSize;
  std::uint32_t batches;
  std::uint32_t copyEngineNumber;
  void* stream;
};
struct CopyEngineSync {
  bool complete;
  int ranks;
};
struct CopyEngineBatch {
  int operations;
  std::size_t bytes;
  bool syncsInBatch;
};

struct EventV6 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi groupApi;
    CollectiveApiV5 collectiveApi;
    MessageApiV5 messageApi;
    KernelLaunch kernelLaunch;
    CollectiveV5 collective;
    MessageV5 message;
    ProxyOp proxyOp;
    ProxyStep proxyStep;
    KernelChannel kernelChannel;
    NetPluginEvent netPlugin;
    CopyEngineV6 copyEngine;
    CopyEngineSync copyEngineSync;
    CopyEngineBatch copyEngineBatch;
  };
};
using ProfilerV6 = ProfilerFrom5<EventV6>;

}  // namespace falcon::plugin
