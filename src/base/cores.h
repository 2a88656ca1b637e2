// Whether those who share this machine have cores of their own.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstdint>

namespace falcon {

/// Whether this process may use at least as many cores as there are ranks here.
inline bool haveCoresFor(int ranks) {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= ranks;
}

/// Which cores this process may use: who has the same shares them.
struct CoreSet {
  std::uint32_t count = 1, first = 0;
  bool operator==(const CoreSet&) const = default;
};
inline CoreSet coresOfThisProcess() {
  CoreSet mine;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0)
    return {.count = static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN))};
  mine.count = static_cast<std::uint32_t>(CPU_COUNT(&cores));
  while (mine.first < CPU_SETSIZE && !CPU_ISSET(mine.first, &cores)) ++mine.first;
  return mine;
}

}  // namespace falcon
