// Who in this process wants to know when the job is held and let go: frameworks with watchdogs of their own.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace falcon::control {

/// Thread-safe. Callbacks run on the monitor's thread, one after the other.
class TrapCallbacks {
 public:
  enum class Held : int { no, suspended, tested };
  using Callback = void (*)(int held, unsigned limitMilliseconds, void* context);

  /// The process's: they outlive jobs.
  static TrapCallbacks& ofProcess();

  void add(Callback callback, void* context);
  /// The newest of this kind; false: there is none. When it returns, the callback does not run and will not again,
  /// unless it is called from a callback.
  bool remove(Callback callback, void* context);
  void call(Held held, Nanoseconds limit);

 private:
  // Recursive: a callback may add and remove.
  std::recursive_mutex mutex_;
  std::vector<std::pair<Callback, void*>> callbacks_;
};

}  // namespace falcon::control
