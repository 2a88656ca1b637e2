// How long a sending end has waited, and for whom: what the congestion score wants of a transport.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "falcon_net_state.h"

namespace falcon::net {

/// Written by the thread that uses the connection, without a lock; read by any thread.
class WaitTimes {
 public:
  enum class For { nobody, receiver, network };

  /// What is waited for from now on.
  void become(For what, Nanoseconds now) {
    const For was = what_.load(std::memory_order_relaxed);
    if (was == what) return;
    const auto passed = static_cast<std::uint64_t>(now.count() - since_.load(std::memory_order_relaxed));
    if (was == For::receiver) add(receiver_, passed);
    if (was == For::network) add(network_, passed);
    since_.store(now.count(), std::memory_order_relaxed);
    what_.store(what, std::memory_order_relaxed);
  }
  /// Puts them into a reading that says already when it is taken.
  void read(falconNetConnection_v1& reading) const {
    std::uint64_t receiver = receiver_.load(std::memory_order_relaxed);
    std::uint64_t network = network_.load(std::memory_order_relaxed);
    const auto since = since_.load(std::memory_order_relaxed);
    const auto now = reading.taken > since ? static_cast<std::uint64_t>(reading.taken - since) : 0;
    const For what = what_.load(std::memory_order_relaxed);
    if (what == For::receiver) receiver += now;
    if (what == For::network) network += now;
    reading.busyNanoseconds = receiver + network;
    reading.receiverLimitedNanoseconds = receiver;
    reading.valid |= FALCON_NET_LIMITS;
  }

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  std::atomic<For> what_{For::nobody};
  std::atomic<std::int64_t> since_{0};
  std::atomic<std::uint64_t> receiver_{0}, network_{0};
};

}  // namespace falcon::net
