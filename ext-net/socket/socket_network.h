// NCCL's network over TCP: a device is an interface.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/dialling_book.h"
#include "core/network.h"
#include "socket/dialling.h"

namespace falcon::net {

class SocketNetwork final : public Network {
 public:
  Result<std::span<const Device>> devices() override;
  Result<std::unique_ptr<Listener>> listen(int device, Handle handle) override;
  Result<std::unique_ptr<Connection>> connect(int device, Handle handle) override;
  void sample(int device, falconNetDevice_v1& reading, DeviceCounts& counts) override;

 private:
  std::mutex mutex_;
  std::vector<Device> devices_;           // never changed once there are some
  std::vector<SocketAddress> addresses_;  // of the devices
  DiallingBook<Dialling> diallings_;
};

}  // namespace falcon::net
