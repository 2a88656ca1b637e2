#include "watchdog.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "communicator.h"

namespace falcon::python {

// How exactly timeouts are kept; it costs five wake-ups a second.
constexpr std::chrono::milliseconds interval{200};

Watchdog& Watchdog::instance() {
  // Never destroyed: its thread goes on while the process exits. A forked child has neither that thread nor its
  // parent's communicators, and perhaps a mutex that nobody will ever let go: it gets another one.
  static Watchdog* only = [] {
    pthread_atfork(nullptr, nullptr, [] { only = new Watchdog; });
    return new Watchdog;
  }();
  return *only;
}

void Watchdog::watch(const std::shared_ptr<Communicator>& communicator) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(communicator);
  if (serving_) return;
  std::thread([this] {
    pthread_setname_np(pthread_self(), "nccl-falcon-wdg");
    serve();
  }).detach();
  serving_ = true;
}

void Watchdog::serve() {
  while (true) {
    std::this_thread::sleep_for(interval);
    std::vector<std::shared_ptr<Communicator>> living;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(watched_, [](const auto& each) { return each.expired(); });
      for (const auto& each : watched_)
        if (auto communicator = each.lock()) living.push_back(std::move(communicator));
      if (living.empty()) {
        serving_ = false;
        return;
      }
    }
    for (const auto& communicator : living) communicator->endIfOverdue(std::chrono::steady_clock::now());
  }
}

}  // namespace falcon::python
