// What stays a little above the healthy level: too little for an onset, and for too long to be chance.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace falcon::instrument {

/// Watches logarithms of iteration times beside the healthy level. Minor is what lies above it by `least` or more over
/// the newest 200 iterations, in each eighth of them by half of that, and clear of the noise; it is over when the
/// newest 50 lie below that half. What still grows is none: it goes on to be an onset. Medians: spikes and single fast
/// iterations say nothing. Bounded memory; used by one thread.
class MinorSlowness {
 public:
  static constexpr std::size_t lasting = 200;  ///< iterations

  /// @param least  of the logarithm
  explicit MinorSlowness(double least) : least_(least) {}

  enum class Turn : std::uint8_t { none, begins, ends };
  /// @param healthy       the healthy level, and how many samples told it
  /// @param deviation     of one sample, neighbours' likeness allowed for
  Turn add(double value, double healthy, std::int64_t healthySamples, double deviation);

  /// The level was entered or learnt anew: what came before is of another one. What was told stays told until it ends.
  void restart() { newest_.clear(); }
  /// Something else is told of the job now, an onset or a new beginning.
  void clear();

  bool active() const { return active_; }
  double level() const { return level_; }            ///< the median of those that told the last turn
  double confidence() const { return confidence_; }  ///< probability that the level is on that side of the border

 private:
  double medianOf(std::size_t first, std::size_t count) const;
  bool lasts(double healthy, double error) const;
  bool grows(double excess) const;
  Turn turn(double level, double border, double error);

  const double least_;
  std::deque<double> newest_;
  std::size_t sinceLooked_ = 0;
  bool active_ = false;
  double level_ = 0, confidence_ = 0;
};

}  // namespace falcon::instrument
