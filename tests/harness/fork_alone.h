// fork() for tests whose children start threads of their own.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace falcon::test {

/// Threads of this process that a fork would leave behind in the middle of something.
inline int threadsBesidesThis() {
  const auto all = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
#if defined(__SANITIZE_THREAD__)
  return static_cast<int>(all) - 2;  // one is the sanitizer's own
#else
  return static_cast<int>(all) - 1;
#endif
}

/// As fork(); ends the test program if other threads run. The locks that they hold would stay locked in the child: the
/// address sanitizer's allocator hangs there (seen once in some hundred forks), the thread sanitizer allows no threads.
inline pid_t forkAlone() {
  // A thread that was joined may be seen in /proc a moment longer.
  for (int i = 0; threadsBesidesThis() > 0; ++i) {
    if (i == 5000) {
      std::fprintf(stderr, "a test forks while %d other threads run\n", threadsBesidesThis());
      std::abort();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::fflush(nullptr);
  return fork();
}

}  // namespace falcon::test
