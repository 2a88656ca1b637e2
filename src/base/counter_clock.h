// The steady clock for those who ask it in every call, from the processor's counter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace falcon {

/// The time-stamp counter of an x86-64 processor, where the kernel itself tells the time by it.
struct TimeStampCounter {
  /// False elsewhere: a virtual machine with a clock of its own, a counter that stops or changes its pace, another
  /// processor. Looked up once in a process.
  static bool tellsTime() noexcept;
  static std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  static Nanoseconds now() noexcept {
    return SystemClock::instance().now();
  }
};

/// Tells the same time as SystemClock, in a third of what that takes: counted on from a reading of it that is a
/// millisecond old at most, at a pace measured between two readings to a thousandth: a microsecond off at most, where
/// the kernel does not correct its clock meanwhile. Never goes back. Where the counter does not tell time, the clock is
/// read each time. Used by one thread.
template <class Source = TimeStampCounter>
class CounterClock {
 public:
  Nanoseconds now() noexcept {
    const std::uint64_t passed = reach_ != 0 ? Source::ticks() - from_.ticks : 0;
    const Nanoseconds told =
        passed < reach_ ? from_.time + Nanoseconds(static_cast<std::int64_t>(passed * pace_ >> paceBits)) : readAnew();
    return last_ = std::max(last_, told);
  }

 private:
  static constexpr int paceBits = 32;
  static constexpr Nanoseconds longest = 1ms;
  /// Of a pace in nanoseconds: what is beyond was measured while the machine stood still.
  static constexpr std::uint64_t slowest = std::uint64_t{10} << paceBits, fastest = (std::uint64_t{1} << paceBits) / 10;

  /// The clock, read between two looks at the counter, which are `taken` apart: half of that off at most. Long where
  /// another thread had the processor meanwhile.
  struct Reading {
    std::uint64_t ticks = 0;  ///< in the middle
    Nanoseconds time{0};      ///< 0: none
    std::uint64_t taken = 0;
  };
  static Reading read() noexcept {
    const std::uint64_t before = Source::ticks();
    const Nanoseconds now = Source::now();
    const std::uint64_t taken = Source::ticks() - before;
    return {before + taken / 2, now, taken};
  }
  /// Of readings that took this long, all in all: what they are off is half a thousandth of `duration`, in ticks.
  static constexpr bool isExact(std::uint64_t taken, std::uint64_t duration) { return taken < duration >> 10; }

  Nanoseconds readAnew() noexcept {
    if (!Source::tellsTime()) return Source::now();
    const Reading now = read();
    const std::uint64_t passed = now.ticks - from_.ticks;
    const Nanoseconds since = now.time - from_.time;
    if (from_.time == Nanoseconds(0) || since > 1s) {
      countOnFrom(now);  // at the pace that it had
    } else if (since < longest / 2) {
      if (reach_ != 0) forget();  // the counter has jumped
    } else if (isExact(now.taken + from_.taken, passed)) {
      measure(passed, since);
      countOnFrom(now);
    }  // else next time
    return now.time;
  }

  /// If it is exact enough for that, which one that tells the pace of a long time need not be. Where no pace is known
  /// nothing is counted.
  void countOnFrom(const Reading& reading) noexcept {
    if (reach_ == 0 || isExact(reading.taken, reach_)) from_ = reading;
  }

  void measure(std::uint64_t passed, Nanoseconds since) noexcept {
    pace_ = (static_cast<std::uint64_t>(since.count()) << paceBits) / passed;
    const bool canBe = pace_ > fastest && pace_ < slowest;
    reach_ = canBe ? (static_cast<std::uint64_t>(longest.count()) << paceBits) / pace_ : 0;
  }
  void forget() noexcept {
    reach_ = 0;
    from_ = {};
  }

  Reading from_;             ///< the last one that was taken to count on from
  std::uint64_t pace_ = 0;   ///< of a tick, in nanoseconds times 2^32
  std::uint64_t reach_ = 0;  ///< ticks from that reading on for which the pace is good; 0: it is not known
  Nanoseconds last_{0};
};

}  // namespace falcon
