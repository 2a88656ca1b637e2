// What this library wants from the CUDA driver, behind an interface; the driver is looked up at run time.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"

namespace falcon::gpu {

/// Whose memory a pointer names. `pageable`: the driver does not know it, so it is ordinary host memory.
enum class MemoryKind { pageable, pinned, device, managed };

/// Events of the driver: each stands for what was on a stream when it was recorded. Thread-safe; nothing blocks, and
/// nothing disturbs a stream that is being captured into a graph.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  enum class Kind { plain, timed };
  /// An event behind all that is on `stream` now: `event` where that will do, which is freed otherwise; null makes a
  /// new one of that kind. Null: nothing runs there, since it is captured, or the driver refuses.
  virtual void* record(void* stream, void* event, Kind kind = Kind::plain) const = 0;
  /// Also where the driver no longer knows.
  virtual bool isDone(void* event) const = 0;
  virtual void free(void* event) const = 0;
  /// From the first to the second on the device, which are timed, of the same context, and done. To half a microsecond.
  virtual std::optional<Nanoseconds> between(void* first, void* second) const = 0;
  /// The context of a stream; null: the driver does not say.
  virtual void* contextOf(void* stream) const = 0;
  /// A stream of our own in that context, which waits for no other; null: the driver refuses. It stays.
  virtual void* makeStream(void* context) const = 0;
};

/// Thread-safe.
class CudaDriver {
 public:
  virtual ~CudaDriver() = default;
  /// Devices this process may use; 0 where the driver cannot be used.
  virtual int deviceCount() const = 0;
  virtual MemoryKind memoryOf(const void* pointer) const = 0;
  /// The calling thread's context; contexts are carried over to the threads that set up communicators in a group.
  virtual void* currentContext() const = 0;
  virtual void makeCurrent(void* context) const = 0;
  /// Makes the device's primary context the calling thread's, as cudaSetDevice does. False where it cannot.
  virtual bool useDevice(int device) const = 0;
  /// Null where the driver is too old for it. Lives as long as the driver.
  virtual const StreamEvents* streamEvents() const { return nullptr; }
};

/// libcuda.so.1, initialised; null where there is none or it does not work. Loads it on first use.
std::shared_ptr<const CudaDriver> loadCudaDriver();
/// The same, but only where the process has loaded it already: who has no driver has no device pointers.
std::shared_ptr<const CudaDriver> cudaDriverIfLoaded();
/// How many devices it shows; nothing where nobody has initialised it in this process, which is not done for this.
std::optional<int> deviceCountIfInitialised();

}  // namespace falcon::gpu
