// Version 4 of NCCL's profiler plugin interface (2.27).
#pragma once

#include "plugin/profiler/profiler_abi.h"

namespace falcon::plugin {

struct CollectiveV4 {
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
};
struct MessageV4 {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};

struct EventV4 {
  std::uint8_t type;
  void* parent;  ///< of a collective or message: its group's
  int rank;
  union {
    CollectiveV4 collective;
    MessageV4 message;
    ProxyOp proxyOp;
    ProxyStep proxyStep;
    KernelChannel kernelChannel;
    NetPluginEvent netPlugin;
  };
};

struct ProfilerV4 {
  const char* name;
  ResultCode (*init)(void** context, int* mask, const char* communicatorName, std::uint64_t communicator, int nodes,
                     int ranks, int rank, Logger logger);
  ResultCode (*startEvent)(void* context, void** handle, EventV4* event);
  ResultCode (*stopEvent)(void* handle);
  ResultCode (*recordEventState)(void* handle, EventState state, StateArguments* arguments);
  ResultCode (*finalize)(void* context);
};

}  // namespace falcon::plugin
