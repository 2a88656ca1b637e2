// Calls NCCL while it is opened: with the loader's lock.
#include "nccl.h"

namespace {

__attribute__((constructor)) void begin() {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
}

}  // namespace
