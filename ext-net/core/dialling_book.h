// Connections that are being made: NCCL asks for each again and again, with the same handle.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "core/listener_handle.h"

namespace falcon::net {

/// Thread-safe; a dialling itself is used by one thread at a time.
/// @tparam Dialling  has isAbout(const ListenerHandle&) and isOverdue(Nanoseconds now)
template <class Dialling>
class DiallingBook {
 public:
  /// What the handle is about: of an earlier call, as it notes, or new. Drops those that nobody has asked for in time.
  template <class Make>
  std::shared_ptr<Dialling> find(const ListenerHandle& from, Handle handle, const Make& make) {
    std::vector<std::shared_ptr<Dialling>> dropped;  // end without the lock: that may take a moment
    const std::lock_guard lock(mutex_);
    const auto known = diallings_.find(from.dialling);
    if (known != diallings_.end() && known->second->isAbout(from)) return known->second;
    const Nanoseconds now = SystemClock::instance().now();
    std::erase_if(diallings_, [&](const auto& entry) {
      const bool isOverdue = entry.second->isOverdue(now);
      if (isOverdue) dropped.push_back(entry.second);
      return isOverdue;
    });
    auto fresh = make();
    diallings_[++last_] = fresh;
    noteDialling(handle, last_);
    return fresh;
  }
  /// It is over: the handle is as it was at first.
  void forget(Handle handle) {
    const auto about = diallingIn(handle);
    noteDialling(handle, 0);
    const std::lock_guard lock(mutex_);
    diallings_.erase(about);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Dialling>> diallings_;
  std::uint64_t last_ = 0;
};

}  // namespace falcon::net
