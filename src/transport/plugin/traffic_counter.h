// Counts what goes over one end of a plugin's connection, for falcon_net_state.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "falcon_net_state.h"

namespace falcon::transport::net {

/// Counts for the thread that uses the connection, without a lock; is read by any thread.
class TrafficCounter {
 public:
  /// A message of so many bytes was begun; of a receive, so many are expected at most.
  void began(std::size_t bytes, Nanoseconds now) {
    add(bytesInFlight_, bytes);
    if (requestsInFlight_.load(std::memory_order_relaxed) == 0)
      waitingSince_.store(now.count(), std::memory_order_relaxed);
    add(requestsInFlight_, 1);
  }
  /// One is done.
  void done(std::size_t expected, std::size_t bytes, Nanoseconds now) {
    add(bytes_, bytes);
    add(messages_, 1);
    add(bytesInFlight_, -std::uint64_t{expected});
    add(requestsInFlight_, -std::uint64_t{1});
    if (requestsInFlight_.load(std::memory_order_relaxed) > 0) return;
    add(waited_, static_cast<std::uint64_t>(now.count() - waitingSince_.load(std::memory_order_relaxed)));
    waitingSince_.store(0, std::memory_order_relaxed);
  }

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// Puts them into a reading that says already when it is taken and which end it is of.
  void read(falconNetConnection_v1& reading) const {
    reading.bytes = bytes();
    reading.messages = messages_.load(std::memory_order_relaxed);
    reading.bytesInFlight = bytesInFlight_.load(std::memory_order_relaxed);
    reading.requestsInFlight = requestsInFlight_.load(std::memory_order_relaxed);
    if (!reading.sends) return;
    const auto since = waitingSince_.load(std::memory_order_relaxed);
    reading.sendWaitNanoseconds = waited_.load(std::memory_order_relaxed);
    if (since != 0 && reading.taken > since)
      reading.sendWaitNanoseconds += static_cast<std::uint64_t>(reading.taken - since);
    reading.valid |= FALCON_NET_SEND_WAIT;
  }

 private:
  /// One thread writes: no need for an atomic sum.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> bytes_{0}, messages_{0}, bytesInFlight_{0}, requestsInFlight_{0}, waited_{0};
  std::atomic<std::int64_t> waitingSince_{0};  // with a request in flight
};

}  // namespace falcon::transport::net
