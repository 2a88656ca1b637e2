// What a net plugin of ours can do, whatever version of NCCL's interface it is asked by: adapter.h translates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "core/device_signs.h"
#include "falcon_net_state.h"
#include "transport/plugin/net_abi.h"

namespace falcon::net {

/// Names a listener to the one who connects. Travels by NCCL's own ways, so only the job has seen it.
using Handle = std::span<std::byte, transport::net::handleBytes>;

struct Device {
  std::string name;     ///< of the interface
  std::string pciPath;  ///< "": none
  std::uint64_t guid = 0;
  int memory = transport::net::hostMemory;  ///< kinds that it can reach: a mask
  int speed = 0;                            ///< Mbit/s
  int port = 0;
  float latency = 0;  ///< microseconds
  int connections = 1 << 16;
};

/// A send, receive or flush on its way. Belongs to its connection; used until it is done.
class Request {
 public:
  virtual ~Request() = default;
  /// Whether it is done; then it may not be used any more. `bytes`: how many were moved.
  virtual Result<bool> test(std::size_t& bytes) = 0;
};

/// One end. Used by one thread at a time. After an error it only gives that error.
class Connection {
 public:
  virtual ~Connection() = default;
  /// A mark for memory that messages will come from or go to; null where none is needed.
  virtual Result<void*> registerMemory(void* data, std::size_t bytes, int kind) = 0;
  /// Of memory that the kernel knows as a DMA buffer, as that of GPUs: `data` is where it begins for the GPU, `offset`
  /// where in the buffer of the descriptor `file`. Error (internal): the device's properties do not say that it can.
  virtual Result<void*> registerDmaBuffer(void* data, std::size_t bytes, int kind, std::uint64_t offset, int file);
  virtual void deregisterMemory(void* mark) = 0;
  /// Null: not now, ask again.
  virtual Result<Request*> start(void* data, std::size_t bytes, void* mark) = 0;
  /// After a receive: done once the GPU sees what has come. Null: it does already, as the host always does.
  virtual Result<Request*> flush(void*, std::size_t, void*) { return nullptr; }
};

/// Used by one thread at a time.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Null: nobody has come (and proven itself) yet. Never blocks.
  virtual Result<std::unique_ptr<Connection>> accept() = 0;
};

/// One a process. Thread-safe.
class Network {
 public:
  virtual ~Network() = default;
  /// Its devices never change. Error (system): there is none.
  virtual Result<std::span<const Device>> devices() = 0;
  virtual Result<std::unique_ptr<Listener>> listen(int device, Handle handle) = 0;
  /// Null: not yet, ask again with the same handle, in which it keeps where it is. Never blocks.
  virtual Result<std::unique_ptr<Connection>> connect(int device, Handle handle) = 0;
  /// Puts what the system counts of a device into a reading: numbers, and their bits of `valid`; and what a reading has
  /// no field for.
  virtual void sample(int device, falconNetDevice_v1& reading, DeviceCounts& counts) = 0;
};

/// Of the plugin that this is linked into: what it calls itself, and its only network.
extern const char networkName[];
Network& network();

}  // namespace falcon::net
