#include "base/clock.h"

#include <thread>

namespace falcon {

Nanoseconds SystemClock::now() const {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void SystemClock::sleep(Nanoseconds duration) {
  std::this_thread::sleep_for(duration);
}

SystemClock& SystemClock::instance() {
  // Nothing is run to make or to destroy it: threads ask for the time while the process forks or exits.
  static constinit SystemClock clock;
  return clock;
}

}  // namespace falcon
