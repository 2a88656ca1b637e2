#include "base/process_age.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

namespace falcon {

double secondsSinceProcessStart() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // proc(5): the name, in brackets, may have anything in it; the start is the 20th word behind it, in ticks since boot.
  const std::size_t bracket = text.rfind(')');
  unsigned long long start = 0;
  if (bracket == std::string::npos ||
      std::sscanf(text.c_str() + bracket + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start) != 1)
    return 0;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const double age = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
                     static_cast<double>(start) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::max(age, 0.0);
}

}  // namespace falcon
