#include "inject/shared_counter.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace falcon::tools {

Result<SharedCounter> makeSharedCounter() {
  using Counter = std::atomic<std::uint64_t>;
  void* page = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Error::system("cannot get shared memory: {}", std::strerror(errno));
  return SharedCounter(new (page) Counter(0), [](Counter* counter) { ::munmap(counter, sizeof(Counter)); });
}

}  // namespace falcon::tools
