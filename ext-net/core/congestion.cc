#include "core/congestion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/counters.h"

namespace falcon::net {
namespace {

// Against these the evidence of others is measured: docs/net-state.md says what they were taken from.
constexpr double queueScale = 0.010;  // seconds: a queue that holds bytes for so long is half of a whole slowness
constexpr double marksScale = 0.05;
constexpr double lossesScale = 0.05;
constexpr double lossesSpared = 0.01;
constexpr double lossesUsual = 2;  // times
constexpr double othersScale = 0.25;
/// Nanoseconds of a round trip, whatever the least one was: who came before us filled the queues even then.
constexpr double roundTripThatOthersNeed = 4e6;
/// From this share of the time on the network sets the rate; below, whoever sends or the processor does.
constexpr double shareThatSetsTheRate = 0.9;
/// What is left of the best rate after a reading in which it was not reached: half after a minute of ten a second.
constexpr double bestRateKept = 0.9988;
constexpr double weightOfSlowness = 0.45, weightOfContention = 0.55;
constexpr double healthyBelow = 0.1, contendedFrom = 0.5;

bool knows(const falconNetConnection_v1& now, const falconNetConnection_v1& before, std::uint32_t what) {
  return (now.valid & before.valid & what) == what;
}

/// What was delivered is known in segments, which are smaller where messages are; bytes of messages are counted when
/// these are done, which on a slow link is seldom.
double bytesOfASegment(const falconNetConnection_v1& now, const falconNetConnection_v1& before) {
  constexpr double usual = 1448;
  const double segments = grown(now.segments, before.segments);
  if (!knows(now, before, FALCON_NET_WIRE_BYTES | FALCON_NET_RETRANSMITS) || segments <= 0) return usual;
  return grown(now.wireBytes, before.wireBytes) / segments;
}

}  // namespace

double CongestionJudge::rateLost(double rate, double share, std::size_t sharing) {
  // The kernel's own figure is of the last flight: on a healthy link it was seen to differ by a factor of 400.
  recentRates_[readings_++ % recentRates_.size()] = sharing > 0 ? rate * static_cast<double>(sharing) : INFINITY;
  bestRate_ = std::max(rate, bestRate_ * bestRateKept);
  recentShare_ = share < shareThatSetsTheRate ? 0 : recentShare_ + 1;
  if (recentShare_ < recentRates_.size() || bestRate_ <= 0) return 0;
  return 1 - ratio(*std::max_element(recentRates_.begin(), recentRates_.end()), bestRate_ / 2);
}

double CongestionJudge::lossesBeyondUsual(const falconNetConnection_v1& now) {
  const Sent sent{now.segments, now.retransmits};
  const Sent before = std::exchange(recentSent_[lossReadings_ % recentSent_.size()], sent);
  if (lossReadings_++ < static_cast<int>(recentSent_.size())) {
    if (lossReadings_ == 1) firstSent_ = sent;
    usualLosses_ = ratio(grown(sent.again, firstSent_.again), grown(sent.segments, firstSent_.segments));
    return 0;
  }
  // A connection that lost all it sent waits for long before it sends again: then what was known stays.
  if (sent.segments > before.segments)
    losses_ = ratio(grown(sent.again, before.again), grown(sent.segments, before.segments));
  return losses_ - lossesSpared - lossesUsual * usualLosses_;
}

Congestion CongestionJudge::judge(const falconNetConnection_v1& now, const OnTheInterface& beside,
                                  const DeviceSigns& signs) {
  const falconNetConnection_v1 before = before_;
  const bool isFirst = !hasBefore_;
  before_ = now;
  hasBefore_ = true;
  const double wall = static_cast<double>(now.taken - before.taken);
  if (isFirst || wall <= 0 || !knows(now, before, FALCON_NET_LIMITS)) return {};
  if (!knows(now, before, FALCON_NET_RTT) && !signs.isKnown()) return {};
  const double busy = grown(now.busyNanoseconds, before.busyNanoseconds);
  if (busy <= 0) return {};

  Congestion found;
  const double limited = grown(now.receiverLimitedNanoseconds, before.receiverLimitedNanoseconds) +
                         grown(now.bufferLimitedNanoseconds, before.bufferLimitedNanoseconds);
  found.parts.share = ratio(busy - limited, wall);

  const double queue = grown(now.rttNanoseconds, now.rttLeastNanoseconds) / 1e9;
  found.parts.slowness = queue / (queue + queueScale);
  if (knows(now, before, FALCON_NET_ECN)) {
    const double rate = grown(now.delivered, before.delivered) * bytesOfASegment(now, before) / wall;
    found.parts.slowness = std::max(found.parts.slowness, rateLost(rate, found.parts.share, beside.ours));
  }
  found.parts.slowness = std::max(found.parts.slowness, signs.held);

  double contention = std::max(0.0, signs.contention);
  if (knows(now, before, FALCON_NET_ECN))
    contention = std::max(
        contention,
        ratio(ratio(grown(now.ecnMarked, before.ecnMarked), grown(now.delivered, before.delivered)), marksScale));
  if (knows(now, before, FALCON_NET_RETRANSMITS))
    contention = std::max(contention, ratio(lossesBeyondUsual(now), lossesScale));
  if (beside.others >= 0 && static_cast<double>(now.rttNanoseconds) > roundTripThatOthersNeed)
    contention = std::max(contention, ratio(beside.others, othersScale));
  found.parts.contention = contention;

  found.score = found.parts.share * (weightOfSlowness * found.parts.slowness + weightOfContention * contention);
  found.condition = found.score < healthyBelow   ? falconNetHealthy
                    : contention < contendedFrom ? falconNetSlow
                                                 : falconNetCongested;
  return found;
}

}  // namespace falcon::net
