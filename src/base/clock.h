// Time comes in through this interface, so that tests, replay and the simulator run on a clock of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace falcon {

using Nanoseconds = std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// A steady clock. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary fixed point; never goes back.
  virtual Nanoseconds now() const = 0;
  virtual void sleep(Nanoseconds duration) = 0;
};

/// CLOCK_MONOTONIC, as std::chrono::steady_clock has it. Inline: two readings are a third of what a watched call costs.
class SystemClock final : public Clock {
 public:
  Nanoseconds now() const override {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
  }
  void sleep(Nanoseconds duration) override;
  /// The one instance of the process; has no state. Nothing is run to make or to destroy it: threads ask for the time
  /// while the process forks or exits.
  static SystemClock& instance() {
    static constinit SystemClock clock;
    return clock;
  }
};

/// Seconds since 1970.
inline double wallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Moves only when told. For tests. Used by one thread.
class ManualClock final : public Clock {
 public:
  Nanoseconds now() const override { return now_; }
  void sleep(Nanoseconds duration) override { now_ += duration; }
  void advance(Nanoseconds duration) { now_ += duration; }

 private:
  Nanoseconds now_{0};
};

/// Seconds as a double, for arithmetic on durations.
inline double seconds(Nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

/// The way back; fractions of a nanosecond are cut off. `seconds` must fit: less than 292 years.
inline Nanoseconds fromSeconds(double seconds) {
  return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace falcon
