// NCCL's network over UCX: one device, whatever UCX reaches by it.
#pragma once

#include <ucp/api/ucp.h>

#include <mutex>
#include <vector>

#include "core/meeting_dialling.h"
#include "core/network.h"

namespace falcon::net {

class UcxNetwork final : public Network {
 public:
  Result<std::span<const Device>> devices() override;
  Result<std::unique_ptr<Listener>> listen(int device, Handle handle) override;
  Result<std::unique_ptr<Connection>> connect(int device, Handle handle) override;
  void sample(int, falconNetDevice_v1&, DeviceCounts&) override {}

 private:
  /// With mutex_ held.
  Status open();
  MakeLooseEnd ends(bool sends) const;

  std::mutex mutex_;
  ucp_context_h context_ = nullptr;  // as long as the process: connections may outlive all else
  std::vector<Device> devices_;      // never changed once there is one
  SocketAddress address_;
  DiallingBook<MeetingDialling> diallings_;
};

}  // namespace falcon::net
