// What a net plugin can be asked to do, whatever version of the interface it has: one adapter a version translates.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/plugin_library.h"
#include "transport/plugin/net_abi.h"

namespace falcon::transport::net {

/// What the host engine must know of one of a plugin's devices.
struct DeviceProperties {
  const char* name = nullptr;      ///< lives as long as the plugin
  int memory = 0;                  ///< kinds that it can reach: a mask
  int speed = 0;                   ///< Mbit/s
  int connections = 0;             ///< the most
  int receives = 0;                ///< the most that one request may stand for
  int kind = hostDevice;           ///< who moves the data
  int parts = 1;                   ///< devices that it is made of
  int mostParts = 1;               ///< that the version has room for
  std::size_t longestMessage = 0;  ///< bytes
};

/// The plugin's functions, with its result codes. A connection is used by one thread at a time; different connections,
/// by different ones at the same time. Functions that may say "not yet" succeed and leave the pointer null.
class NetCalls {
 public:
  virtual ~NetCalls() = default;

  virtual int version() const = 0;
  /// Null where the plugin says none.
  virtual const char* name() const = 0;
  /// Members that the plugin must have, and has not. Then nothing else may be called.
  virtual std::vector<const char*> missing() const = 0;
  /// Whether each communicator has a context of its own (version 11); else there is one init() a process, and no end.
  virtual bool hasContexts() const = 0;

  virtual ResultCode init(std::uint64_t communicator, void** context) const = 0;
  virtual ResultCode devices(int* count) const = 0;
  virtual ResultCode getProperties(int device, DeviceProperties& properties) const = 0;
  virtual ResultCode listen(void* context, int device, void* handle, void** listenComm) const = 0;
  virtual ResultCode connect(void* context, int device, void* handle, void** sendComm) const = 0;
  virtual ResultCode accept(void* listenComm, void** recvComm) const = 0;
  /// Of memory of the host.
  virtual ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const = 0;
  virtual ResultCode deregMr(void* comm, void* mhandle) const = 0;
  virtual ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const = 0;
  virtual ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const = 0;
  /// `*size` keeps its value where the plugin tells no size.
  virtual ResultCode test(void* request, int* done, int* size) const = 0;
  virtual ResultCode closeSend(void* sendComm) const = 0;
  virtual ResultCode closeRecv(void* recvComm) const = 0;
  virtual ResultCode closeListen(void* listenComm) const = 0;
  virtual ResultCode finalize(void* context) const = 0;
};

std::unique_ptr<NetCalls> adaptV6(const void* symbol);
std::unique_ptr<NetCalls> adaptV7(const void* symbol);
std::unique_ptr<NetCalls> adaptV8(const void* symbol);
std::unique_ptr<NetCalls> adaptV9(const void* symbol);
std::unique_ptr<NetCalls> adaptV10(const void* symbol);
std::unique_ptr<NetCalls> adaptV11(const void* symbol);
std::unique_ptr<NetCalls> adaptV12(const void* symbol);

/// Newest first, as they are looked for.
inline constexpr plugin::PluginVersion<NetCalls> netVersions[] = {
    {"ncclNetPlugin_v12", adaptV12}, {"ncclNetPlugin_v11", adaptV11}, {"ncclNetPlugin_v10", adaptV10},
    {"ncclNetPlugin_v9", adaptV9},   {"ncclNetPlugin_v8", adaptV8},   {"ncclNetPlugin_v7", adaptV7},
    {"ncclNetPlugin_v6", adaptV6}};

}  // namespace falcon::transport::net
