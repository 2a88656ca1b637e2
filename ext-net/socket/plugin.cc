// libnccl-net-falcon-socket.so: which network it has.
#include "socket/socket_network.h"

namespace falcon::net {

const char networkName[] = "falcon-socket";

Network& network() {
  static auto* one = new SocketNetwork;  // NCCL may call until the process is gone
  return *one;
}

}  // namespace falcon::net
