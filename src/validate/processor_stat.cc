#include "validate/processor_stat.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/cpu_cgroup.h"
#include "base/text.h"

namespace falcon::validate {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  return leadingNumber<std::uint64_t>(text);
}

constexpr int mostProcessors = 8192;

std::string thermalCount(int processor) {
  return "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/thermal_throttle/core_throttle_count";
}

}  // namespace

void parseCpuStat(std::string_view text, ProcessorStat& stat) {
  for (const auto line : split(text, '\n')) {
    const auto blank = line.find(' ');
    if (blank == line.npos) continue;
    const auto name = line.substr(0, blank);
    const auto value = number(line.substr(blank + 1));
    if (!value) continue;
    if (name == "nr_throttled") stat.throttledPeriods = *value;
    if (name == "throttled_time") stat.throttled = Nanoseconds(*value);
    if (name == "throttled_usec") stat.throttled = std::chrono::microseconds(*value);
  }
}

void parseSchedStat(std::string_view text, ProcessorStat& stat) {
  const auto parts = split(text, ' ');
  if (parts.size() < 2) return;
  if (const auto value = number(parts[1])) stat.runQueueWait = Nanoseconds(*value);
}

void parseSteal(std::string_view text, const std::vector<int>& processors, Nanoseconds tick, ProcessorStat& stat) {
  std::uint64_t ticks = 0;
  std::size_t found = 0;
  for (const auto line : split(text, '\n')) {  // cpu3 user nice system idle iowait irq softirq steal ...
    const auto parts = split(line, ' ');
    if (parts.size() < 9 || !parts[0].starts_with("cpu")) continue;
    const auto processor = number(parts[0].substr(3));
    const auto steal = number(parts[8]);
    if (!processor || !steal) continue;
    if (std::find(processors.begin(), processors.end(), static_cast<int>(*processor)) == processors.end()) continue;
    ticks += *steal;
    ++found;
  }
  if (found > 0) stat.steal = tick * ticks / found;
}

std::vector<int> allowedProcessors() {
  std::vector<int> processors;
  cpu_set_t* const set = CPU_ALLOC(mostProcessors);
  const auto bytes = CPU_ALLOC_SIZE(mostProcessors);
  if (set && sched_getaffinity(0, bytes, set) == 0)
    for (int processor = 0; processor < mostProcessors; ++processor)
      if (CPU_ISSET_S(static_cast<unsigned>(processor), bytes, set)) processors.push_back(processor);
  CPU_FREE(set);
  return processors;
}

ProcessorStat readProcessorStat() {
  ProcessorStat stat;
  // Every time anew: a process may be moved to another cgroup while it runs.
  for (const auto& folder : cpuCgroupFolders(readText("/proc/self/cgroup"), readText("/proc/self/mountinfo"))) {
    parseCpuStat(readText(folder + "/cpu.stat"), stat);
    if (stat.throttled) break;  // v2 files of cgroups without the cpu controller lack these lines
  }
  parseSchedStat(readText("/proc/thread-self/schedstat"), stat);
  const auto processors = allowedProcessors();
  parseSteal(readText("/proc/stat"), processors, Nanoseconds(1s) / std::max(1L, sysconf(_SC_CLK_TCK)), stat);
  for (const int processor : processors)
    if (const auto count = number(readText(thermalCount(processor))))
      stat.thermalThrottles = stat.thermalThrottles.value_or(0) + *count;
  return stat;
}

Nanoseconds threadRunQueueWait() {
  ProcessorStat stat;
  parseSchedStat(readText("/proc/thread-self/schedstat"), stat);
  return stat.runQueueWait.value_or(0ns);
}

ProcessorStat operator-(const ProcessorStat& later, const ProcessorStat& earlier) {
  const auto difference = [](const auto& after, const auto& before) {
    auto result = after;
    // Smaller than before: moved to another cgroup in between.
    if (after && before && *after >= *before)
      *result -= *before;
    else
      result.reset();
    return result;
  };
  return {difference(later.throttledPeriods, earlier.throttledPeriods), difference(later.throttled, earlier.throttled),
          difference(later.runQueueWait, earlier.runQueueWait), difference(later.steal, earlier.steal),
          difference(later.thermalThrottles, earlier.thermalThrottles)};
}

}  // namespace falcon::validate
