// What a process has one of, safe across fork().
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>

namespace falcon {

/// One T a process, made at the first need and never destroyed: threads may still use it while the process exits.
/// A forked child makes its own. The parent's is of no use to it: a thread that the child does not have may have been
/// changing it, its lock held for ever. For the same reason there is no lock here; two threads may both make a T, and
/// one of the two is dropped, so that making one must do nothing that is seen outside.
/// Asks for the process id each time: not for the call path. Declare it constinit.
template <class T>
class PerProcess {
 public:
  constexpr PerProcess() = default;

  T& get() {
    Entry* known = current_.load(std::memory_order_acquire);
    while (!known || known->process != getpid()) {
      auto fresh = std::make_unique<Entry>();
      fresh->parents = known;
      if (current_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel))
        return fresh.release()->value;
    }
    return known->value;
  }

  /// Null: this process has made none yet. Takes no memory.
  T* existing() {
    Entry* const known = current_.load(std::memory_order_acquire);
    return known && known->process == getpid() ? &known->value : nullptr;
  }

 private:
  struct Entry {
    const pid_t process = getpid();
    T value{};
    Entry* parents = nullptr;  ///< of the process that this one was forked from
  };
  std::atomic<Entry*> current_{nullptr};
};

}  // namespace falcon
