// libnccl-net-falcon-ucx.so: which network it has.
#include "ucx/ucx_network.h"

namespace falcon::net {

const char networkName[] = "falcon-ucx";

Network& network() {
  static auto* one = new UcxNetwork;  // NCCL may call until the process is gone
  return *one;
}

}  // namespace falcon::net
