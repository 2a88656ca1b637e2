// Which cores a process may use.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstdint>

namespace falcon {

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
