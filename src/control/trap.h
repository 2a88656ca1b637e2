// The trap of this process. Frozen: every thread that is in the library is held wherever it is, until it is opened.
// Draining: threads are held at the entry of their next event only, and run on while others wait for what they enter.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/hold_point.h"
#include "control/drain.h"

namespace falcon::control {

/// Thread-safe. Held threads sleep on a condition variable. A trap that nobody opens opens itself at its limit, so that
/// a dead controller cannot hold a job.
class Trap final : public HoldPoint {
 public:
  /// What the trap knows of a thread that calls.
  struct ThreadSlot {
    std::atomic<std::int64_t> lastCall{0};
    std::atomic<bool> inside{false};
    std::atomic<bool> held{false};
    std::atomic<bool> gone{false};
  };

  explicit Trap(const Clock& clock) : clock_(clock) { reliesOnHeavyFences_ = takePartInHeavyFences(); }

  /// What this process's ranks have entered is counted in `counts`, valid until forget().
  void watch(DrainGate::Part part, const CallCounts& counts);
  void forget(DrainGate::Part part);

  void close(Nanoseconds limit, bool draining = false);
  /// A closed trap drains from now on: who is frozen goes on to its next event.
  void drain();
  /// Targets of the drain.
  void order(std::uint64_t version, const Counts& targets);
  void open();
  void lookAgain() override;
  bool closed() const { return raised_.load(std::memory_order_acquire); }

  bool draining() const;

  struct DrainState {
    DrainGate::Report report;
    bool held = false;  ///< it is not below a target, as holdsAll() has it, and all that it has launched is done
    std::vector<DrainGate::Part> parts;
    bool working = false;  ///< only that last thing is missing
  };
  /// While draining: where this process is, if that has changed since the last time. `launchedIsDone` is asked where
  /// all else is as it should be; it must not block, nor call this.
  std::optional<DrainState> takeNews(
      Nanoseconds recent, const std::function<bool()>& launchedIsDone = [] { return true; });

  /// Opens it if its limit has passed: where no thread is held none does.
  void expire();

  /// Nobody is inside of a call and not held, and all threads that called within the last `recent` are held. Where none
  /// is held at all, since nobody calls (a rank that waits for something else, or computes for long): only when the
  /// trap has been closed for `recent`, which gives them the time to come. Whoever calls from then on is held. Never
  /// again, once there was no memory to keep account of a thread.
  bool holdsAll(Nanoseconds recent) const;
  /// How long the trap has held, all times together, threads counted once.
  Nanoseconds totalClosed() const;

  /// Of the calling thread: valid until it ends, or the trap does.
  ThreadSlot& mySlot() noexcept;
  /// On the call path, before and after each call: a store or two.
  static void noteEntry(ThreadSlot& mine) noexcept { mine.inside.store(true, std::memory_order_relaxed); }
  static void noteCall(ThreadSlot& mine, Nanoseconds now) noexcept {
    mine.lastCall.store(now.count(), std::memory_order_relaxed);
    mine.inside.store(false, std::memory_order_relaxed);
  }
  void noteCall(Nanoseconds now) noexcept override { noteCall(mySlot(), now); }

  /// While it lives, the calling thread counts as held: it waits in the library for just that.
  class Asking {
   public:
    explicit Asking(Trap& trap) : slot_(trap.mySlot()) { slot_.held.store(true, std::memory_order_release); }
    ~Asking() {
      slot_.lastCall.store(resting.count(), std::memory_order_relaxed);
      slot_.held.store(false, std::memory_order_release);
    }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    ThreadSlot& slot_;
  };

 private:
  struct SlotOwner;

  void holdEvent(CallEvent& event) override;
  void hold() override;
  void sleep(std::unique_lock<std::mutex>& lock);
  void raise(Nanoseconds limit);
  void lower();
  bool holdsAllNow(Nanoseconds recent) const;
  ThreadSlot& ownSlot();

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  Nanoseconds closedSince_{0};
  Nanoseconds deadline_{0};
  Nanoseconds totalClosed_{0};
  DrainGate gate_;
  bool draining_ = false;
  bool newsDue_ = false;
  bool saidHeld_ = false;
  bool saidWorking_ = false;
  std::vector<std::shared_ptr<ThreadSlot>> slots_;
  ThreadSlot nobodys_;                      ///< of the threads for whose own there was no memory
  std::atomic<bool> missesThreads_{false};  ///< there are such: it is not known any more whether all are held
  bool missesSaid_ = false;                 ///< of who closes the trap
};

}  // namespace falcon::control
