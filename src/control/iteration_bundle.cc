#include "control/iteration_bundle.h"

#include <algorithm>
#include <cmath>

namespace falcon::control {
namespace {

bool sameKind(const Sample& one, const Sample& two) {
  return one.microBatches == two.microBatches && one.disturbed == two.disturbed && one.provisional == two.provisional &&
         one.pattern == two.pattern && (one.processor < 0) == (two.processor < 0) && (one.work > 0) == (two.work > 0);
}

void addTo(std::vector<CommunicatorTime>& sums, const CommunicatorTime& time) {
  const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.id == time.id; });
  if (same == sums.end()) {
    sums.push_back(time);
    return;
  }
  same->seconds += time.seconds;
  same->calls += time.calls;
}

void addTo(std::vector<RangeTime>& sums, const RangeTime& range) {
  const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.name == range.name; });
  if (same == sums.end()) {
    sums.push_back(range);
    return;
  }
  same->seconds += range.seconds;
  same->times += range.times;
}

}  // namespace

std::optional<Sample> IterationBundle::add(const Sample& iteration) {
  if (count_ > 0 && sameKind(sum_, iteration)) {
    sum_.index = iteration.index;
    sum_.quotaCores = iteration.quotaCores;
    if (sum_.processor >= 0) {
      // Cores are means over time: longer iterations count for more.
      const double whole = sum_.seconds + iteration.seconds, share = whole > 0 ? iteration.seconds / whole : 0;
      sum_.processor += iteration.processor;
      sum_.busyCores += (iteration.busyCores - sum_.busyCores) * share;
      sum_.stolenCores += (iteration.stolenCores - sum_.stolenCores) * share;
    }
    sum_.seconds += iteration.seconds;
    sum_.outside += iteration.outside;
    sum_.work += iteration.work;
    for (const CommunicatorTime& time : iteration.communicators) addTo(sum_.communicators, time);
    for (const RangeTime& range : iteration.ranges) addTo(sum_.ranges, range);
    ++count_;
  } else {
    sum_ = iteration;
    count_ = 1;
  }
  if (sum_.seconds < seconds(shortest)) return std::nullopt;
  Sample mean = sum_;
  mean.seconds /= count_;
  mean.outside /= count_;
  mean.work /= count_;
  if (mean.processor >= 0) mean.processor /= count_;
  for (CommunicatorTime& time : mean.communicators) {
    time.seconds /= count_;
    time.calls = static_cast<std::uint32_t>(std::lround(static_cast<double>(time.calls) / count_));
  }
  for (RangeTime& range : mean.ranges) {
    range.seconds /= count_;
    range.times = static_cast<std::uint32_t>(std::lround(static_cast<double>(range.times) / count_));
  }
  count_ = 0;
  return mean;
}

}  // namespace falcon::control
