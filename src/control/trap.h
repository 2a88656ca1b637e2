// The trap, frozen kind: holds every thread of this process that is in the library, wherever it is, until it is opened.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/hold_point.h"

namespace falcon::control {

/// Thread-safe. Held threads sleep on a condition variable. A trap that nobody opens opens itself at its limit, so that
/// a dead controller cannot hold a job.
class Trap final : public HoldPoint {
  struct ThreadSlot {
    std::atomic<std::int64_t> lastCall{0};
    std::atomic<bool> inside{false};
    std::atomic<bool> held{false};
    std::atomic<bool> gone{false};
  };

 public:
  explicit Trap(const Clock& clock) : clock_(clock) {}

  void close(Nanoseconds limit);
  void open();
  bool closed() const { return raised_.load(std::memory_order_acquire); }

  /// Opens it if its limit has passed: where no thread is held none does.
  void expire();

  /// Nobody is inside of a call and not held, and all threads that called within the last `recent` are held. Where none
  /// is held at all, since nobody calls (a rank that waits for something else, or computes for long): only when the
  /// trap has been closed for `recent`, which gives them the time to come. Whoever calls from then on is held.
  bool holdsAll(Nanoseconds recent) const;
  /// How long the trap has held, all times together, threads counted once.
  Nanoseconds totalClosed() const;

  /// On the call path, before and after each call: a thread-local store.
  void noteEntry() noexcept;
  void noteCall(Nanoseconds now) noexcept override;

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

  void holdCall(CommunicatorId, std::uint64_t) override { hold(); }
  void holdWait() override { hold(); }
  void hold();
  ThreadSlot& mySlot();

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  Nanoseconds closedSince_{0};
  Nanoseconds deadline_{0};
  Nanoseconds totalClosed_{0};
  std::vector<std::shared_ptr<ThreadSlot>> slots_;
};

}  // namespace falcon::control
