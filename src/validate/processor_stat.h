// What the kernel says about why a thread did not run: its cgroup's quota, and other threads on its core.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace falcon::validate {

/// Counters since some fixed point; what the kernel does not tell stays empty.
struct ProcessorStat {
  std::optional<std::uint64_t> throttledPeriods;  ///< quota periods in which the process's cgroup had to stop
  std::optional<Nanoseconds> throttled;           ///< time it was stopped, summed over its processors
  std::optional<Nanoseconds> runQueueWait;        ///< time the calling thread was ready but not running
  std::optional<Nanoseconds> steal;               ///< taken by the hypervisor, mean over the thread's processors
  std::optional<std::uint64_t> thermalThrottles;  ///< times that one of the thread's processors was too hot
};

/// The processors that the calling thread may run on.
std::vector<int> allowedProcessors();

/// Of the calling thread and its process, now.
ProcessorStat readProcessorStat();

/// Time the calling thread was ready but not running, so far; 0 where the kernel does not tell. About 10 us.
Nanoseconds threadRunQueueWait();

/// Later minus earlier; empty where either is.
ProcessorStat operator-(const ProcessorStat& later, const ProcessorStat& earlier);

// The parts, for tests.

/// Reads `nr_throttled` and `throttled_time` (v1, ns) or `throttled_usec` (v2).
void parseCpuStat(std::string_view text, ProcessorStat& stat);

/// Reads /proc/stat: the mean over `processors` of the time that the hypervisor gave to others.
void parseSteal(std::string_view text, const std::vector<int>& processors, Nanoseconds tick, ProcessorStat& stat);

/// Reads the second number of a schedstat file: nanoseconds in the run queue.
void parseSchedStat(std::string_view text, ProcessorStat& stat);

}  // namespace falcon::validate
