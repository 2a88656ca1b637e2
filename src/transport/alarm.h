// A timer on the reactor's thread.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "transport/reactor.h"

namespace falcon::transport {

/// Rings once per set(). Whoever is called by it holds itself weakly: after the alarm is destroyed it does not ring.
class Alarm {
 public:
  Alarm(std::shared_ptr<Reactor> reactor, std::function<void()> ring);
  ~Alarm();
  /// Replaces the time set before.
  void set(Nanoseconds fromNow);

 private:
  const std::shared_ptr<Reactor> reactor_;
  const std::uint64_t timer_;
};

}  // namespace falcon::transport
