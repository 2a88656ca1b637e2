// Whether those who share this machine have cores of their own.
#pragma once

#include <sched.h>

namespace falcon {

/// Whether this process may use at least as many cores as there are ranks here.
inline bool haveCoresFor(int ranks) {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= ranks;
}

}  // namespace falcon
