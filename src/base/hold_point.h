// What the engines ask wherever the job may be held: at a call's entry and in every wait loop.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/asymmetric_fence.h"
#include "base/call_counts.h"
#include "base/clock.h"
#include "base/types.h"

namespace falcon {

/// The engines' view of the trap. One relaxed load where nothing is held.
/// A held thread blocks inside hold() or holdEvent() and does not spin. Never asked by CommAbort, CommRevoke,
/// CommGetAsyncError.
class HoldPoint {
 public:
  virtual ~HoldPoint() = default;

  /// Before an event that has been counted as entered: so whoever raises the trap and then makes a heavy fence either
  /// finds it counted, or it is held here. Returns with the event counted.
  void passEvent(CallEvent& event) {
    lightFence(reliesOnHeavyFences_);
    if (raised_.load(std::memory_order_relaxed)) [[unlikely]]
      holdEvent(event);
  }
  /// Before a call enters its engine, and in a wait loop at a chunk boundary. Data in flight stay untouched.
  void pass() {
    if (raised_.load(std::memory_order_relaxed)) [[unlikely]]
      hold();
  }
  /// This thread uses the library at `now`: who holds the job waits for it too, for a while. `resting`: it has nothing
  /// to do there until it says so again.
  virtual void noteCall(Nanoseconds) noexcept {}
  static constexpr Nanoseconds resting = Nanoseconds::min();
  /// Events were called off: who is held for one of them is let go. From any thread.
  virtual void lookAgain() {}
  /// After a call, so that the trap knows which threads are inside the library.
  void leaveCall() {
    if (raised_.load(std::memory_order_relaxed)) [[unlikely]]
      left();
  }

 protected:
  virtual void holdEvent(CallEvent& event) = 0;
  virtual void hold() = 0;
  virtual void left() {}
  std::atomic<bool> raised_{false};
  bool reliesOnHeavyFences_ = false;
};

/// For NCCL_FALCON=0 and for tests: never holds anything.
class OpenHoldPoint final : public HoldPoint {
  void holdEvent(CallEvent&) override {}
  void hold() override {}
};

}  // namespace falcon
