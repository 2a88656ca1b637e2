// NCCL's network over TCP: a device is an interface.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/network.h"
#include "socket/dialling.h"

namespace falcon::net {

class SocketNetwork final : public Network {
 public:
  Result<std::span<const Device>> devices() override;
  Result<std::unique_ptr<Listener>> listen(int device, Handle handle) override;
  Result<std::unique_ptr<Connection>> connect(int device, Handle handle) override;
  void sample(int device, falconNetDevice_v1& reading) override;

 private:
  /// With mutex_ held: a new one, or that which the handle is about; also drops those that nobody has asked for in
  /// time.
  std::shared_ptr<Dialling> diallingOf(int device, const SocketHandle& from, Handle handle);
  void forget(std::uint64_t dialling);

  std::mutex mutex_;
  std::vector<Device> devices_;           // never changed once there are some
  std::vector<SocketAddress> addresses_;  // of the devices
  std::map<std::uint64_t, std::shared_ptr<Dialling>> diallings_;
  std::uint64_t lastDialling_ = 0;
};

}  // namespace falcon::net
