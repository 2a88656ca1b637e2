// How long has the present regime lasted? Bayesian online change-point detection.
#pragma once

#include <cstdint>
#include <vector>

namespace falcon::instrument {

/// The probability of every possible start of the present run, updated with each value:
/// P(r_t, x_1..t) = sum over r_{t-1} of P(x_t | run) P(r_t | r_{t-1}) P(r_{t-1}, x_1..t-1), normalised.
/// A run's values are normal with unknown mean and variance (so the prediction is Student's t), mixed with a broad
/// outlier component: one spike neither ends a run nor widens it. Bounded: the 32 likeliest starts are kept.
/// Values are logarithms of durations, so that everything is relative. Used by one thread.
/// Source: Adams and MacKay, Bayesian Online Changepoint Detection (2007), arXiv 0710.3742.
class RunLengthPosterior {
 public:
  /// @param first  number of the first value that will be added
  explicit RunLengthPosterior(std::int64_t first = 0) : added_(first) {}

  /// @param noise        expected standard deviation of values inside a run (an empirical prior; the run learns its
  /// own)
  /// @param outlierRate  expected share of values that belong to no run, in (0, 1)
  void add(double value, double noise, double outlierRate);

  /// Number of the likeliest run's first value.
  std::int64_t likeliestStart() const;
  /// Probability that the present run started with value number `first` or later.
  double startedSince(std::int64_t first) const;

 private:
  struct Run {
    std::int64_t start = 0;
    double weight = 0;  // probability
    // Normal-inverse-gamma: mean, pseudo-observations, shape, scale.
    double mean = 0, count = 0, shape = 0, scale = 0;
  };
  static constexpr std::size_t keptRuns = 32;

  std::vector<Run> runs_;
  std::size_t likeliest_ = 0;  // in runs_
  std::int64_t added_ = 0;
};

}  // namespace falcon::instrument
