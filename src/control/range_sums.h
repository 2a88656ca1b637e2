// The application's ranges, added up by iteration.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "control/messages.h"
#include "instrument/range_log.h"

namespace falcon::control {

/// Reads a range log, and gives every iteration the ranges that ended in it. Used by one thread.
class RangeSums {
 public:
  explicit RangeSums(instrument::RangeLog* log) : log_(log) {}

  /// Reads what was written since the last time. Before the calls are read: what ended before a call did is then known.
  void read() {
    if (!log_) return;
    std::vector<instrument::RangeRecord> records;
    log_->readFrom(next_, records);
    for (const instrument::RangeRecord& record : records) waiting_.push_back(record);
    while (waiting_.size() > mostWaiting) waiting_.pop_front();
  }

  /// Of the iteration [start, end]; older ranges belong to none. Shown in the log's header, too.
  std::vector<RangeTime> take(Nanoseconds start, Nanoseconds end) {
    std::vector<RangeTime> times;
    if (!log_) return times;
    struct Sum {
      Nanoseconds time{0};
      std::uint32_t times = 0;
    };
    std::map<std::uint32_t, Sum> sums;
    for (const std::uint32_t shown : shown_) sums[shown];
    std::deque<instrument::RangeRecord> later;
    for (const instrument::RangeRecord& record : waiting_) {
      if (record.end > end) {
        later.push_back(record);
      } else if (record.end > start) {
        sums[record.name].time += record.end - record.begin;
        ++sums[record.name].times;
      }
    }
    waiting_ = std::move(later);
    shown_.clear();
    for (const auto& [name, sum] : sums) {
      log_->showLast(name, sum.time, sum.times);
      if (sum.times == 0) continue;
      shown_.push_back(name);
      times.push_back({log_->text(name), seconds(sum.time), sum.times});
    }
    return times;
  }

 private:
  static constexpr std::size_t mostWaiting = 65536;

  instrument::RangeLog* const log_;
  std::uint64_t next_ = 0;
  std::deque<instrument::RangeRecord> waiting_;
  std::vector<std::uint32_t> shown_;  // names of the last iteration
};

}  // namespace falcon::control
