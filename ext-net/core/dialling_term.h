// What all diallings have: whom they are about, and how long they may take.
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/parameters.h"
#include "core/listener_handle.h"

namespace falcon::net {

/// Begins when it is made. As DiallingBook wants it.
class DiallingTerm {
 public:
  explicit DiallingTerm(const ListenerHandle& handle)
      : handle_(handle), since_(SystemClock::instance().now()), limit_(parameters::initTimeout.value()) {}

  const ListenerHandle& handle() const { return handle_; }
  bool isAbout(const ListenerHandle& handle) const {
    return handle.listener == handle_.listener && handle.secret == handle_.secret;
  }
  bool isOverdue(Nanoseconds now) const { return now - since_ > limit_; }
  /// Error (remote): what is said of one that is overdue; not logged yet.
  Error overdue() const {
    return Error::remote("{} has not let us in for {:.0f} s ({}): is the rank there still alive?",
                         handle_.address.text(), seconds(limit_), parameters::initTimeout.name());
  }

 private:
  const ListenerHandle handle_;
  const Nanoseconds since_, limit_;
};

}  // namespace falcon::net
