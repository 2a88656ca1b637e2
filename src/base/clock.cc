#include "base/clock.h"

#include <thread>

namespace falcon {

void SystemClock::sleep(Nanoseconds duration) {
  std::this_thread::sleep_for(duration);
}

}  // namespace falcon
