// Version 5 of NCCL's profiler plugin interface (2.28): the calls of the API, and longer types.
#pragma once

#include "plugin/profiler/profiler_abi.h"

namespace falcon::plugin {

struct CollectiveApiV5 {
  const char* function;
  std::size_t count;
  const char* type;
  int root;
  void* stream;
  bool graphCaptured;
};
struct MessageApiV5 {
  const char* function;
  std::size_t count;
  const char* type;
  void* stream;
  bool graphCaptured;
};
struct CollectiveV5 {
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
  void* group;  ///< the parent that version 4 has
};
struct MessageV5 {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* group;
};

struct EventV5 {
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
  };
};

/// Versions from 5 on differ in what they say of an event only.
template <class Event>
struct ProfilerFrom5 {
  const char* name;
  ResultCode (*init)(void** context, std::uint64_t communicator, int* mask, const char* communicatorName, int nodes,
                     int ranks, int rank, Logger logger);
  ResultCode (*startEvent)(void* context, void** handle, Event* event);
  ResultCode (*stopEvent)(void* handle);
  ResultCode (*recordEventState)(void* handle, EventState state, StateArguments* arguments);
  ResultCode (*finalize)(void* context);
};
using ProfilerV5 = ProfilerFrom5<EventV5>;

}  // namespace falcon::plugin
