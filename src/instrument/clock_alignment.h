// How another process's clock stands to ours.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace falcon::instrument {

/// One question and its answer, as NTP has them.
struct ClockExchange {
  Nanoseconds asked{0};     ///< our clock, when the question left
  Nanoseconds received{0};  ///< their clock, when it came
  Nanoseconds answered{0};  ///< their clock, when the answer left
  Nanoseconds back{0};      ///< our clock, when it came
};

/// Estimates offset and drift of another clock from exchanges over a network whose delays vary. The truth lies within
/// errorBound() as long as clocks drift by no more than mostDrift against each other. Only the quickest exchanges
/// count: the less time one took, the less it leaves open. Bounded memory. Used by one thread.
/// Source: the clock filter of NTP (RFC 5905, section 10) and Cristian's bound, half of the round trip.
class ClockAlignment {
 public:
  /// Quartz clocks are specified to 100 parts a million or better; twice that when they drift apart.
  static constexpr double mostDrift = 200e-6;

  /// False: the exchange is impossible (it ended before it began, or took no time at all less than theirs); dropped.
  bool add(const ClockExchange& exchange);
  bool known() const { return !kept_.empty(); }

  /// Their clock minus ours, at this moment of our clock.
  Nanoseconds offsetAt(Nanoseconds ours) const;
  /// How far offsetAt can be from the truth.
  Nanoseconds errorBound(Nanoseconds ours) const;
  /// Their seconds a second of ours, minus 1; 0 until exchanges span ten seconds.
  double drift() const { return drift_; }

  /// A moment of their clock, on ours.
  Nanoseconds toOurs(Nanoseconds theirs) const;

 private:
  struct Sample {
    Nanoseconds at{0};      // our clock, middle of the exchange
    Nanoseconds offset{0};  // theirs minus ours
    Nanoseconds error{0};   // half of the round trip
  };
  static constexpr std::size_t keptSamples = 32;

  const Sample& best(Nanoseconds ours) const;
  void estimateDrift();

  std::deque<Sample> kept_;
  double drift_ = 0;
};

}  // namespace falcon::instrument
