// When the device came to what the vendor's engine had launched, and when it was done: calls return long before.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "gpu/cuda_driver.h"

namespace falcon::gpu {

/// What a thread launches together, a call or a group. Empty: it is not timed.
struct TimedLaunch {
  struct OnStream {
    void* stream = nullptr;
    void* before = nullptr;  ///< the event
    std::vector<CommunicatorId> communicators;
  };
  std::vector<OnStream> streams;
};

/// A launch for one communicator.
struct DeviceTime {
  CommunicatorId communicator = 0;
  Nanoseconds entered{0};  ///< the host was in the call that launched it
  Nanoseconds reached{0};  ///< the device had done all that was on the stream before, and the host had launched it
  Nanoseconds done{0};
  bool onHostsClock = true;  ///< else off by more than was asked for, all of one take() and context by the same
};

/// A rank has come to a call when its stream has: it may be late by its processor or by its device. So an event that is
/// timed stands before every launch, and one behind it. Only while it is enabled: else a launch costs one relaxed load.
///
/// Device times are brought to the host's clock by an event on an idle stream of our own, which the host waits for
/// (tens of microseconds; more than is wanted: each tells how long it took, and not when). One for a process.
/// Thread-safe, never blocks but in take(), never touches a stream that is captured, never asks the driver under the
/// mutex (see MarkedWork).
class DeviceTimes {
 public:
  static constexpr std::size_t mostOpen = 8192;  ///< launches; the oldest go first
  static constexpr Nanoseconds usuallyUncertain = 500us;

  DeviceTimes(std::function<std::shared_ptr<const CudaDriver>()> driver, Clock& clock)
      : findDriver_(std::move(driver)), clock_(clock) {}
  ~DeviceTimes();

  void enable(bool on) { enabled_.store(on, std::memory_order_relaxed); }
  bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }

  /// The calling thread is about to launch that: the first one on a stream sets the mark.
  void before(TimedLaunch& launch, void* stream, CommunicatorId communicator) noexcept;
  /// It has. `entered`: any time within the call. Empties `launch`.
  void behind(TimedLaunch& launch, Nanoseconds entered) noexcept;

  /// What is done and was not taken yet. Waits for tens of milliseconds at most, for an event of its own; by one
  /// thread.
  /// @param mostUncertain  what they may be off by on the host's clock, all by the same
  std::vector<DeviceTime> take(Nanoseconds mostUncertain = usuallyUncertain);
  /// Launches that take() would not give yet.
  std::size_t underWay();

 private:
  struct Open {
    void* context = nullptr;
    void *before = nullptr, *behind = nullptr;
    std::vector<CommunicatorId> communicators;
    Nanoseconds entered{0};
  };
  struct Reference {
    void* event = nullptr;
    Nanoseconds at{0};
    bool isExact = true;
  };

  const StreamEvents* events();
  void* spare();
  std::deque<Open> takeOpen();
  void putBack(std::deque<Open> open);
  void keepNewest();
  bool isDone(const Open& launch) const;
  std::optional<Reference> referenceIn(void* context, Nanoseconds mostUncertain);

  const std::function<std::shared_ptr<const CudaDriver>()> findDriver_;
  Clock& clock_;
  std::atomic<bool> enabled_{false};
  std::once_flag looked_;
  std::shared_ptr<const CudaDriver> driver_;
  std::map<void*, void*> streams_;  ///< our own, by context; of who takes
  std::mutex mutex_;                ///< of all below
  std::deque<Open> open_;           ///< the oldest first
  std::vector<void*> spare_;        ///< events to be used again
};

}  // namespace falcon::gpu
