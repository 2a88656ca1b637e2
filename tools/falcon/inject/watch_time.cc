#include "inject/watch_time.h"

#include <signal.h>

#include <algorithm>

namespace falcon::tools {
namespace {

constexpr Nanoseconds betweenLooks = 50ms;

bool isAskedToEnd() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return false;
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

}  // namespace

Status watchFor(Nanoseconds time) {
  auto& clock = SystemClock::instance();
  const Nanoseconds end = clock.now() + time;
  for (Nanoseconds left = time; left > 0ns; left = end - clock.now()) {
    if (isAskedToEnd()) return Error::system("asked to end while the victim was watched");
    clock.sleep(std::min(betweenLooks, left));
  }
  return {};
}

}  // namespace falcon::tools
