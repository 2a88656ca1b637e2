// Says that strangers were dropped, but not once for each of thousands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace falcon::transport {

/// Lets some lines through at once, then one every few seconds. Keeps no clock. Used under its owner's lock.
class DropLog {
 public:
  static constexpr int atOnce = 5;
  static constexpr Nanoseconds refill = 10s;

  /// Whether to write a line now; if so, how many were held back since the last one.
  std::optional<std::uint64_t> pass(Nanoseconds now) {
    if (!last_) last_ = now;
    const auto due = (now - *last_) / refill;
    left_ = static_cast<int>(std::min<std::int64_t>(atOnce, left_ + due));
    *last_ += due * refill;
    if (left_ == 0) {
      ++held_;
      return std::nullopt;
    }
    --left_;
    return std::exchange(held_, 0);
  }

 private:
  int left_ = atOnce;
  std::optional<Nanoseconds> last_;  // when the last one was given
  std::uint64_t held_ = 0;
};

}  // namespace falcon::transport
