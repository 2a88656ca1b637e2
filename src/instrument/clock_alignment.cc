#include "instrument/clock_alignment.h"

#include <algorithm>
#include <cmath>

namespace falcon::instrument {
namespace {

constexpr Nanoseconds leastSpan = 10s;  // shorter ones say more of the network than of the clocks

Nanoseconds scaled(Nanoseconds duration, double factor) {
  return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(duration.count()) * factor));
}

Nanoseconds distance(Nanoseconds a, Nanoseconds b) {
  return a > b ? a - b : b - a;
}

}  // namespace

bool ClockAlignment::add(const ClockExchange& exchange) {
  const Nanoseconds away = exchange.back - exchange.asked, theirs = exchange.answered - exchange.received;
  if (away < 0ns || theirs < 0ns || theirs > away + 1us) return false;
  const Nanoseconds error = std::max(Nanoseconds(0), away - theirs) / 2;
  const Nanoseconds offset = ((exchange.received - exchange.asked) + (exchange.answered - exchange.back)) / 2;
  kept_.push_back({exchange.asked + away / 2, offset, error});
  if (kept_.size() > keptSamples) {
    // The newest stays, and the oldest quick one, which tells the drift; the slowest of the rest goes.
    const auto slowest = std::max_element(kept_.begin(), kept_.end() - 1,
                                          [](const Sample& a, const Sample& b) { return a.error < b.error; });
    kept_.erase(slowest->error > kept_.front().error ? slowest : kept_.begin());
  }
  estimateDrift();
  return true;
}

const ClockAlignment::Sample& ClockAlignment::best(Nanoseconds ours) const {
  const auto uncertainty = [&](const Sample& sample) {
    return sample.error + scaled(distance(ours, sample.at), mostDrift);
  };
  return *std::min_element(kept_.begin(), kept_.end(),
                           [&](const Sample& a, const Sample& b) { return uncertainty(a) < uncertainty(b); });
}

Nanoseconds ClockAlignment::offsetAt(Nanoseconds ours) const {
  if (kept_.empty()) return 0ns;
  const Sample& sample = best(ours);
  return sample.offset + scaled(ours - sample.at, drift_);
}

Nanoseconds ClockAlignment::errorBound(Nanoseconds ours) const {
  if (kept_.empty()) return Nanoseconds::max();
  const Sample& sample = best(ours);
  // The drift is known to within what the limits leave; it is not trusted beyond them.
  return sample.error + scaled(distance(ours, sample.at), mostDrift + std::abs(drift_));
}

Nanoseconds ClockAlignment::toOurs(Nanoseconds theirs) const {
  const Nanoseconds guess = theirs - offsetAt(theirs - (kept_.empty() ? 0ns : kept_.back().offset));
  return theirs - offsetAt(guess);
}

// The line through the quickest exchange of the older half and that of the newer half.
void ClockAlignment::estimateDrift() {
  if (kept_.size() < 4 || kept_.back().at - kept_.front().at < leastSpan) return;
  const auto quicker = [](const Sample& a, const Sample& b) { return a.error < b.error; };
  const auto middle = kept_.begin() + static_cast<std::ptrdiff_t>(kept_.size() / 2);
  const Sample& older = *std::min_element(kept_.begin(), middle, quicker);
  const Sample& newer = *std::min_element(middle, kept_.end(), quicker);
  const double span = seconds(newer.at - older.at);
  if (span < seconds(leastSpan) / 2) return;
  // What the two exchanges leave open must not be taken for drift.
  if (seconds(older.error + newer.error) / span > mostDrift) return;
  drift_ = std::clamp(seconds(newer.offset - older.offset) / span, -mostDrift, mostDrift);
}

}  // namespace falcon::instrument
