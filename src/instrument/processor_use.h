// How much of the processors this process uses, and how much the whole host does: what tells a busy neighbour from a
// job that has more to do.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace falcon::instrument {

/// Processor seconds up to one moment.
struct ProcessorReading {
  Nanoseconds at{0};
  double process = 0;  ///< of this process and of what it started: data loaders work for it too
  double busy = 0;     ///< of all processors of the host
  double stolen = 0;   ///< that the hypervisor gave to other machines
};

/// Fields of the first line of /proc/stat ("cpu user nice system idle iowait irq softirq steal ..."), in ticks; nothing
/// where it is another file. Guests' time is within user and nice. Source: proc_stat(5).
struct HostTicks {
  double busy = 0;    ///< user, nice, system, irq and softirq
  double stolen = 0;  ///< steal
};
std::optional<HostTicks> parseHostTicks(std::string_view stat);
/// Ticks of a process and of its children that have ended and were waited for, from /proc/<pid>/stat: fields 14 to 17
/// of proc_pid_stat(5). The name, field 2, may have blanks and brackets.
std::optional<double> parseProcessTicks(std::string_view stat);

/// Mean use between two moments.
struct ProcessorUse {
  double processSeconds = 0;  ///< as ProcessorReading::process
  double busyCores = 0;
  double stolenCores = 0;
};

/// Reads now and then, and tells what was used between two moments of the last seconds. Used by one thread.
/// Reading is bounded: where it takes long (hundreds of processors, thousands of threads) it happens less often, so
/// that it takes a thousandth of one processor at most.
class ProcessorMeter {
 public:
  static constexpr Nanoseconds shortest = 100ms;  ///< between two readings
  static constexpr Nanoseconds kept = 30s;

  explicit ProcessorMeter(const Clock& clock) : clock_(clock) {}

  /// Reads, where it is time. Nothing is known where the kernel does not tell (no /proc).
  void tick();
  /// Adds what was read elsewhere; readings come in rising order.
  void add(const ProcessorReading& reading);
  /// Nothing where readings are missing at either end. After the newest one, for as long as it came after the one
  /// before, the use is taken to go on as it was between these two.
  std::optional<ProcessorUse> between(Nanoseconds from, Nanoseconds to) const;

 private:
  std::optional<ProcessorReading> read();
  void findDescendants();
  std::optional<ProcessorReading> at(Nanoseconds moment) const;

  const Clock& clock_;
  std::deque<ProcessorReading> readings_;
  std::map<pid_t, std::optional<double>> descendants_;  ///< with the ticks that they had used when they were found
  Nanoseconds due_{0}, descendantsDue_{0};
};

}  // namespace falcon::instrument
