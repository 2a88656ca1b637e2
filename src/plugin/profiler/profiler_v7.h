// Version 7 of NCCL's profiler plugin interface (2.31): phases of a kernel, and the caller's tags. Read from one commit
// of NCCL's; programs that are not NVIDIA's have other things by this name.
#pragma once

#include "plugin/profiler/profiler_v6.h"

namespace falcon::plugin {

struct CollectiveApiV7 {
  const char* function;
  std::size_t count;
  const char* type;
  int root;
  void* stream;
  bool graphCaptured;
  std::uint64_t tag;  ///< ncclCollConfig_t.userProfilerTag
};
struct MessageApiV7 {
  const char* function;
  std::size_t count;
  const char* type;
  void* stream;
  bool graphCaptured;
  std::uint64_t tag;
};
struct CollectiveV7 {
  std::uint64_t number;  ///< among the communicator's collectives of this function
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* group;
  const char* kernelVariant;
  bool symmetric;
  std::uint64_t tag;
};
struct MessageV7 {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* group;
  std::uint64_t tag;
};
struct CopyEngineV7 {
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
  std::uint64_t tag;
};
struct KernelPhase {
  /// Only kernels over symmetric memory tell them: there `initialSync` and `finalSync` are waiting for the peers.
  enum Phase : std::uint8_t { initialSync = 0, compute = 1, finalSync = 2 };
  std::uint8_t channel;
  std::uint8_t phase;
  const char* name;
  std::uint64_t timer;
};

struct EventV7 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi groupApi;
    CollectiveApiV7 collectiveApi;
    MessageApiV7 messageApi;
    KernelLaunch kernelLaunch;
    CollectiveV7 collective;
    MessageV7 message;
    ProxyOp proxyOp;
    ProxyStep proxyStep;
    KernelChannel kernelChannel;
    NetPluginEvent netPlugin;
    CopyEngineV7 copyEngine;
    CopyEngineSync copyEngineSync;
    CopyEngineBatch copyEngineBatch;
    KernelPhase kernelPhase;
  };
};
using ProfilerV7 = ProfilerFrom5<EventV7>;

/// The newest version's description, which all others are translated from and to.
using Event = EventV7;

}  // namespace falcon::plugin
