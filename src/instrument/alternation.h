// The newest samples, and healthy iterations that take turns: what repeats is taken off before anything is judged.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "instrument/periodic_pattern.h"

namespace falcon::instrument {

/// Keeps the newest 128 samples (logarithms), as they came and without the pattern, which is looked for now and then
/// and left at once when it ends or slips its phase. Samples are numbered from 0. Used by one thread.
class Alternation {
 public:
  /// @param threshold  smallest change that counts
  explicit Alternation(double threshold) : threshold_(threshold) {}

  /// What the next sample is without the pattern.
  double without(double raw) const { return raw - pattern_.at(added_); }
  void add(double raw);
  void clear() { *this = Alternation(threshold_); }

  std::int64_t added() const { return added_; }
  /// Number of the oldest one that is kept.
  std::int64_t oldest() const { return added_ - static_cast<std::int64_t>(values_.size()); }
  double operator[](std::int64_t sample) const { return values_[static_cast<std::size_t>(sample - oldest())]; }
  /// Without the pattern, oldest first; as many as there are.
  const std::deque<double>& values() const { return values_; }
  std::vector<double> newest(std::int64_t count) const;

  /// The pattern has ended (that of a slowdown that is over, for one) or has slipped by some turns: what it takes off
  /// would make the newest samples alternate for as long as the pattern is not found anew.
  /// @param deviation  of a sample
  /// @return           how many samples, the newest, have told it; 0: it goes on
  std::int64_t follow(double deviation);

  struct Other {
    PeriodicPattern before, now;
    std::int64_t since = 0;  ///< number of the first sample that is seen by the new one
  };
  /// Looks for the pattern anew where it is time to; nothing: as before.
  std::optional<Other> refind();

 private:
  void set(PeriodicPattern pattern, std::int64_t since);
  double spreadWithout(const PeriodicPattern& pattern, std::size_t count, std::int64_t first) const;

  double threshold_;
  std::deque<double> raw_, values_;
  PeriodicPattern pattern_;
  std::int64_t since_ = 0;  // samples before this one were of another pattern, or of another turn of it
  std::int64_t added_ = 0;
};

}  // namespace falcon::instrument
