// What the kernel counts of a connection's sockets.
#pragma once

#include <vector>

#include "falcon_net_state.h"

namespace falcon::net {

/// The sockets must be open whenever it is called.
class TcpSampler {
 public:
  explicit TcpSampler(std::vector<int> sockets) : sockets_(std::move(sockets)) {}
  /// Counts and rates are the sockets' sums, times limited and busy their means, round trips the largest.
  void operator()(falconNetConnection_v1& reading) const;

 private:
  std::vector<int> sockets_;
};

}  // namespace falcon::net
