// Collects per-channel timing while profiling is on: sums per connection and channel, ready to be sent; the single
// transfers go to the call log. Beside it what a net plugin says of the network meanwhile.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/contained.h"
#include "base/recorders.h"
#include "control/messages.h"
#include "instrument/call_log.h"
#include "transport/plugin/net_snapshot.h"

namespace falcon::control {

/// record() is called by training threads, only while enabled; take() by the monitor.
class TransferSums final : public TransferRecorder {
 public:
  /// Single transfers go there too, to be seen from outside. Before the first record().
  void keepIn(instrument::CallLog* log) { log_ = log; }
  void enable(bool on) {
    if (on) {
      // What was under way while nobody looked is no part of it.
      const std::lock_guard lock(mutex_);
      underWay_.clear();
    }
    enabled_.store(on, std::memory_order_relaxed);
  }

  void record(const TransferTiming& timing) noexcept override {
    if (log_) log_->write(timing);
    // Of a connection for whose sum there is no memory nothing is told.
    contained([&] { add(timing); }, [](const char*) {});
  }

  /// A net plugin's word, by the monitor.
  void note(const transport::net::NetSnapshot& net) {
    if (!enabled_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    for (const falconNetConnection_v1& each : net.connections) {
      if (each.sends == 0 || each.condition == falconNetUnknown) continue;
      const auto [known, first] = net_.try_emplace(each.peer, NetCondition{each.peer, each.condition, each.score});
      if (!first && each.score > known->second.score) known->second = {each.peer, each.condition, each.score};
    }
  }

  /// What came together since the last take.
  TransferProfile take() {
    const std::lock_guard lock(mutex_);
    TransferProfile profile;
    for (auto& [key, sum] : sums_) profile.sums.push_back(sum);
    for (auto& [peer, condition] : net_) profile.net.push_back(std::move(condition));
    sums_.clear();
    net_.clear();
    return profile;
  }

 private:
  void add(const TransferTiming& timing) {
    const std::lock_guard lock(mutex_);
    TransferSum& sum = sums_[{timing.communicator, timing.peer, timing.sending, timing.channel}];
    sum.id = timing.communicator;
    sum.peer = timing.peer;
    sum.sending = timing.sending;
    sum.channel = timing.channel;
    sum.bytes += timing.bytes;
    if (timing.aroundRing) sum.ringBytes += timing.bytes;
    sum.moving += seconds(std::max(timing.moving, underWayOf(timing)));
    sum.waiting += seconds(timing.waiting);
  }

  /// Since the transfer before: what had left this process then went on.
  Nanoseconds underWayOf(const TransferTiming& timing) {
    if (timing.underWayBefore < 0ns || timing.underWayAfter < 0ns) return 0ns;
    const auto [known, first] = underWay_.try_emplace(timing.connection, timing.underWayBefore);
    const Nanoseconds before = std::exchange(known->second, timing.underWayAfter);
    // Another connection may have the place of one that ended.
    return timing.underWayAfter - (before <= timing.underWayAfter ? before : timing.underWayBefore);
  }

  instrument::CallLog* log_ = nullptr;
  std::mutex mutex_;
  std::map<std::tuple<CommunicatorId, Rank, bool, std::int32_t>, TransferSum> sums_;
  std::map<std::string, NetCondition> net_;        ///< by peer's address
  std::map<std::uint64_t, Nanoseconds> underWay_;  ///< at the end of the last transfer, by connection
};

}  // namespace falcon::control
