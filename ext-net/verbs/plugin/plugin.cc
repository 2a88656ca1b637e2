// libnccl-net-falcon-verbs.so: which network it has.
#include "verbs/library_verbs.h"
#include "verbs/verbs_network.h"

namespace falcon::net {

const char networkName[] = "falcon-verbs";

Network& network() {
  // NCCL may call until the process is gone.
  static auto* library = new LibraryVerbs;
  static auto* one = new VerbsNetwork(*library);
  return *one;
}

}  // namespace falcon::net
