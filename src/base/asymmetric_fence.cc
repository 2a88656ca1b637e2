#include "base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace falcon {
namespace {

long membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0);
}

}  // namespace

bool takePartInHeavyFences() {
  // Forbidden in some sandboxes, and old kernels do not know it.
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

void heavyFence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace falcon
