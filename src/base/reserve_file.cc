#include "base/reserve_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>

namespace falcon {

int reserveFile(int file, std::size_t bytes) {
  rlimit largest{};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY && bytes > largest.rlim_cur)
    return EFBIG;
  // The kernel gives up and undoes its work when a signal comes: a profiler's timer could keep it from ever ending.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed;
  do {
    failed = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  } while (failed == EINTR);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failed;
}

}  // namespace falcon
