// How long something was busy, when its spans may overlap.
#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"

namespace falcon::instrument {

/// The length of the union of spans: calls of a group share one span, and threads overlap. Spans are added roughly in
/// the order of their ends, as a call log has them.
class BusyTime {
 public:
  void add(Nanoseconds start, Nanoseconds end) {
    if (end <= start) return;
    while (!spans_.empty() && spans_.back().end >= start) {
      if (spans_.back().start >= end) break;  // a straggler from before: rare, and then counted on its own
      start = std::min(start, spans_.back().start);
      end = std::max(end, spans_.back().end);
      total_ -= spans_.back().end - spans_.back().start;
      spans_.pop_back();
    }
    spans_.push_back({start, end});
    total_ += end - start;
    if (spans_.size() > 2 * keptSpans) spans_.erase(spans_.begin(), spans_.end() - keptSpans);
  }
  Nanoseconds total() const { return total_; }

 private:
  struct Span {
    Nanoseconds start, end;
  };
  static constexpr std::ptrdiff_t keptSpans = 64;  // older ones cannot overlap what is still to come

  std::vector<Span> spans_;
  Nanoseconds total_{0};
};

}  // namespace falcon::instrument
