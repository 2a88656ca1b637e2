// The newest calls of a process while profiling is on, ready to be sent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "base/call.h"
#include "control/messages.h"

namespace falcon::control {

/// Used by one thread, the monitor's. Bounded by what the controller asked for.
class CallWindow {
 public:
  static constexpr std::size_t mostCalls = 8192;

  void start(std::size_t most) {
    calls_.clear();
    most_ = std::min(most, mostCalls);
  }
  void add(const CallRecord& record) {
    if (most_ == 0) return;
    if (calls_.size() == most_) calls_.pop_front();
    calls_.push_back({.communicator = record.communicator,
                      .operation = static_cast<std::uint8_t>(record.operation),
                      .peer = record.peer,
                      .sequence = record.sequence,
                      .bytes = record.count * sizeOf(record.type),
                      .enter = record.enter.count(),
                      .duration = (record.leave - record.enter).count()});
  }
  /// Calls were lost: what came before the gap cannot be put beside what comes after.
  void interrupt() { calls_.clear(); }
  CallTimes take() {
    CallTimes times;
    times.calls.assign(calls_.begin(), calls_.end());
    start(0);
    return times;
  }

 private:
  std::size_t most_ = 0;
  std::deque<TimedCall> calls_;
};

}  // namespace falcon::control
