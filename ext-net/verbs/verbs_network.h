// NCCL's network over verbs: a device is an active port.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/meeting_dialling.h"
#include "core/network.h"
#include "verbs/verbs_port.h"

namespace falcon::net {

/// How queue pairs find each other, and the sign that a peer is gone, go over TCP (NCCL_SOCKET_IFNAME).
class VerbsNetwork final : public Network {
 public:
  /// @param tree  where the kernel tells of devices
  explicit VerbsNetwork(Verbs& verbs, std::string tree = "/sys/class/infiniband",
                        const Clock& clock = SystemClock::instance())
      : verbs_(verbs), tree_(std::move(tree)), clock_(clock) {}

  Result<std::span<const Device>> devices() override;
  Result<std::unique_ptr<Listener>> listen(int device, Handle handle) override;
  Result<std::unique_ptr<Connection>> connect(int device, Handle handle) override;
  void sample(int device, falconNetDevice_v1& reading, DeviceCounts& counts) override;

 private:
  /// With mutex_ held.
  Status open();
  Device describe(const VerbsPort& port) const;
  std::string folderOf(const VerbsPort& port) const;
  MakeLooseEnd ends(int device, bool sends) const;

  Verbs& verbs_;
  const std::string tree_;
  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Device> devices_;                    // never changed once there are some
  std::vector<std::unique_ptr<VerbsPort>> ports_;  // of the devices
  std::optional<Error> failure_;                   // there will never be any
  SocketAddress address_;
  DiallingBook<MeetingDialling> diallings_;
};

}  // namespace falcon::net
