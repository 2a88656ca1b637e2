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
  // Never destroyed: threads may still ask for the time while the process exits.
  static SystemClock* clock = new SystemClock;
  return *clock;
}

}  // namespace falcon
