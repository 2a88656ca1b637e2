// The moment when a process that makes its first communicator has made it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/clock.h"

namespace falcon::control {

/// Thread-safe.
class FirstCommunicator {
 public:
  void isMade() { set(made_); }
  /// Nobody is to wait for it any more.
  void isGivenUp() { set(givenUp_); }

  /// Waits for either; runs `meanwhile` every `interval`. False: it was given up and never made.
  bool await(Nanoseconds interval, const std::function<void()>& meanwhile) {
    std::unique_lock lock(mutex_);
    while (!made_ && !givenUp_) {
      meanwhile();
      changed_.wait_for(lock, interval);
    }
    return made_;
  }

 private:
  void set(bool& what) {
    {
      const std::lock_guard lock(mutex_);
      what = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool made_ = false, givenUp_ = false;
};

}  // namespace falcon::control
