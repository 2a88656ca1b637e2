// What the vendor's engine has launched on streams, and whether the device is done with it: calls return long before.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "gpu/cuda_driver.h"
#include "gpu/device_times.h"

namespace falcon::gpu {

/// One for a process; outlives its communicators. Thread-safe.
class LaunchedWork {
 public:
  virtual ~LaunchedWork() = default;
  /// The calling thread has just launched something on `stream`, which may be gone by the time that somebody asks.
  virtual void note(void* stream) noexcept = 0;
  /// All that was noted since this was last true is done. Never blocks: work that never ends is never done.
  virtual bool isDone() = 0;
  /// Its times, while the job is profiled.
  virtual DeviceTimes& times() = 0;
};

/// By an event behind the last work of each stream. The driver is never asked under the mutex: a launch may wait for
/// its device, the device for another device's, and that for a launch by a thread that comes here.
class MarkedWork final : public LaunchedWork {
 public:
  /// `driver`: asked once, at the first note. Null, or one without events: nothing is known, and all counts as done.
  explicit MarkedWork(std::function<std::shared_ptr<const CudaDriver>()> driver, Clock& clock = SystemClock::instance())
      : findDriver_(driver), times_(std::move(driver), clock) {}
  ~MarkedWork() override;

  void note(void* stream) noexcept override;
  bool isDone() override;
  DeviceTimes& times() override { return times_; }

 private:
  /// By stream: the event behind its last work. Several where threads use a stream at the same time.
  using Marks = std::multimap<void*, void*>;

  Marks::node_type takeMark(void* stream);

  const std::function<std::shared_ptr<const CudaDriver>()> findDriver_;
  std::once_flag looked_;
  std::atomic<bool> nothingToMark_{false};  ///< there is no driver: nobody has to be asked again
  std::shared_ptr<const CudaDriver> driver_;
  const StreamEvents* events_ = nullptr;  ///< of the driver
  std::mutex mutex_;                      ///< of the next two
  Marks marks_;
  std::size_t out_ = 0;  ///< marks that a thread has taken out, to set them anew or to ask for them
  DeviceTimes times_;
};

}  // namespace falcon::gpu
