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
 public:
  explicit Trap(const Clock& clock) : clock_(clock) {}

  void close(Nanoseconds limit);
  void open();
  bool closed() const { return raised_.load(std::memory_order_acquire); }

  /// All threads that called within the last `recent` are held, and at least one is.
  bool holdsAll(Nanoseconds recent) const;
  /// How long the trap has held, all times together, threads counted once.
  Nanoseconds totalClosed() const;

  /// On the call path, after each call: a thread-local store.
  void noteCall(Nanoseconds now) noexcept override;

 private:
  struct ThreadSlot {
    std::atomic<std::int64_t> lastCall{0};
    std::atomic<bool> held{false};
    std::atomic<bool> gone{false};
  };
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
