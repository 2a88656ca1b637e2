// fork() for tests whose children allocate memory or start threads of their own.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace falcon::test {

/// Threads of this process that a fork would leave behind in the middle of something.
inline int threadsBesidesThis() {
  const auto all = static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
#if defined(__SANITIZE_THREAD__)
  return std::max(0, all - 2);  // the sanitizer makes a thread of its own just before the first of the program's
#else
  return all - 1;
#endif
}

/// How many threads besides the caller run or could run at this moment.
inline int threadsAwakeBesidesThis() {
  int awake = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(gettid())) continue;
    std::string line;
    std::getline(std::ifstream(thread.path() / "stat"), line);
    const auto state = line.rfind(") ");  // proc(5): the state follows the name, which may have blanks
    if (state != std::string::npos && line[state + 2] != 'S') ++awake;
  }
  return awake;
}

/// Forks when `others` has found nobody `inARow` times; ends the test program if that does not come.
inline pid_t forkWithout(int (*others)(), int inARow, const char* whatTheyDo) {
  for (int none = 0, i = 0;; ++i) {
    const int found = others();
    none = found == 0 ? none + 1 : 0;
    if (none == inARow) break;
    if (i == 60'000) {
      std::fprintf(stderr, "a test forks while %d other threads %s\n", found, whatTheyDo);
      std::abort();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::fflush(nullptr);
  return fork();
}

/// As fork(); ends the test program if other threads run. The locks that they hold would stay locked in the child: the
/// address sanitizer's allocator hangs there (seen once in some hundred forks), the thread sanitizer allows no threads.
/// A thread that was joined may be seen in /proc a moment longer: that is waited for.
inline pid_t forkAlone() {
  return forkWithout(threadsBesidesThis, 1, "run");
}

/// As fork(), for tests about what a child does with its parent's threads; ends the test program if those never sleep.
/// A thread that was just started may hold the sanitizer's locks for a moment, and they would stay locked in the child.
inline pid_t forkBesideSleepers() {
  return forkWithout(threadsAwakeBesidesThis, 3, "are at work");
}

}  // namespace falcon::test
