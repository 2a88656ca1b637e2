// How a waiting thread passes the time before it sleeps.
#pragma once

#include <sched.h>

#include <span>

#include "base/clock.h"
#include "transport/ports.h"

namespace falcon::collectives {

/// A wake across cores costs 25 us and a yield 0.2-0.6 us: so it is worth to look again for about two wakes. Where
/// nobody else needs the core, for longer: who sleeps while its peer reads 512 KiB comes late to every call (Gather of
/// 1 MiB between 2 ranks 105 us, AllGather, in which both are busy, 57).
class Patience {
 public:
  /// @param maySpin  every rank can have a core; otherwise a spinning waiter may hold the one that its peer needs
  explicit Patience(bool maySpin) : spinTurns_(maySpin ? 64 : 0), yieldTime_(maySpin ? 500us : 50us) {}
  /// Sleeps at once.
  static Patience none() { return {0, 0ns}; }

  /// Something moved: the next wait is a new one.
  void reset() { turns_ = 0; }
  /// Lets a moment pass; false: it has lasted long enough, sleep now.
  bool again() {
    if (yieldTime_ == 0ns) return false;
    if (turns_ < spinTurns_) {
      // A pause takes 40 ns of some processors: a tenth of what the shortest waits are.
      if (++turns_ > eagerTurns) relax();
      return true;
    }
    const Nanoseconds now = SystemClock::instance().now();
    if (turns_ == spinTurns_) {
      ++turns_;
      since_ = now;
    }
    if (now - since_ > yieldTime_) return false;
    sched_yield();
    return true;
  }

 private:
  Patience(int spinTurns, Nanoseconds yieldTime) : spinTurns_(spinTurns), yieldTime_(yieldTime) {}

  static constexpr int eagerTurns = 16;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const int spinTurns_;
  const Nanoseconds yieldTime_;
  int turns_ = 0;
  Nanoseconds since_{0};
};

/// How a call that cannot go on passes the time.
struct Waiting {
  transport::Waiter& waiter;
  /// Looks and yields for a moment before it sleeps: sooner to see what comes, but behind threads that compute it gets
  /// its core back only after their time slice, while who sleeps is woken before them.
  bool patient = true;

  Patience patience(bool maySpin) const { return patient ? Patience(maySpin) : Patience::none(); }
  /// For who has not looked again and again already.
  void wait(std::span<const transport::WaitSource> sources, Nanoseconds limit) const {
    if (patient)
      waiter.wait(sources, limit);
    else
      waiter.sleep(sources, limit);
  }
};

}  // namespace falcon::collectives
