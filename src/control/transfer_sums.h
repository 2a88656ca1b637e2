// Collects per-channel timing while profiling is on: sums per connection, ready to be sent.
#pragma once

#include <map>
#include <mutex>
#include <tuple>

#include "base/recorders.h"
#include "control/messages.h"

namespace falcon::control {

/// record() is called by training threads, only while enabled; take() by the monitor.
class TransferSums final : public TransferRecorder {
 public:
  void enable(bool on) { enabled_.store(on, std::memory_order_relaxed); }

  void record(const TransferTiming& timing) noexcept override {
    const std::lock_guard lock(mutex_);
    TransferSum& sum = sums_[{timing.communicator, timing.peer, timing.sending}];
    sum.id = timing.communicator;
    sum.peer = timing.peer;
    sum.sending = timing.sending;
    sum.bytes += timing.bytes;
    sum.moving += seconds(timing.moving);
    sum.waiting += seconds(timing.waiting);
  }

  /// What came together since the last take.
  TransferProfile take() {
    const std::lock_guard lock(mutex_);
    TransferProfile profile;
    for (auto& [key, sum] : sums_) profile.sums.push_back(sum);
    sums_.clear();
    return profile;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<CommunicatorId, Rank, bool>, TransferSum> sums_;
};

}  // namespace falcon::control
