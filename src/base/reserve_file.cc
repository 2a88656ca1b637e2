#include "base/reserve_file.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>

#include "base/signals_blocked.h"

namespace falcon {

int reserveFile(int file, std::size_t bytes) {
  rlimit largest{};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY && bytes > largest.rlim_cur)
    return EFBIG;
  // The kernel gives up and undoes its work when a signal comes: a profiler's timer could keep it from ever ending.
  const SignalsBlocked undisturbed;
  int failed;
  do {
    failed = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  } while (failed == EINTR);
  return failed;
}

}  // namespace falcon
