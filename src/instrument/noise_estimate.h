// How much iteration times scatter while nothing changes.
#pragma once

#include <cstddef>
#include <vector>

namespace falcon::instrument {

/// Deviation and memory of the newest residuals: logarithms of durations minus their level. Robust: the largest tenth
/// counts as no larger than the rest, and more than that where it lies far off, so spikes do not widen it, while noise
/// of two modes (iterations that alternate) counts in full. Figures are renewed with every eighth value; memory is
/// bounded. Used by one thread.
class NoiseEstimate {
 public:
  explicit NoiseEstimate(std::size_t kept) : kept_(kept) {}

  void add(double residual);
  void clear();
  /// Every residual through `change(index from the newest, value)`.
  template <class Change>
  void adjust(Change change) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      double& value = values_[(next_ + values_.size() - 1 - i) % values_.size()];
      value = change(i, value);
    }
    renew();
  }

  std::size_t count() const { return values_.size(); }
  /// Standard deviation, a little too large while there are few values; 0 without any.
  double deviation() const { return deviation_; }
  /// How much longer than independent values these take to average out: sqrt((1 + r) / (1 - r)) with r the correlation
  /// of neighbours; 1 where that is not positive, and of fewer than sixteen values.
  double memory() const { return memory_; }

 private:
  void renew();
  double correlation() const;

  const std::size_t kept_;
  std::vector<double> values_;  // a ring once it is full
  std::size_t next_ = 0, sinceRenewed_ = 0;
  double deviation_ = 0, memory_ = 1;
};

}  // namespace falcon::instrument
