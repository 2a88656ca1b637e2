#include "instrument/acf_period.h"

#include <algorithm>
#include <vector>

namespace falcon::instrument {

std::size_t firstCorrelatedLag(std::span<const double> values, std::size_t largestLag) {
  constexpr double enough = 0.95;
  const std::size_t size = values.size();
  if (size < 4) return 0;
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(size);
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / static_cast<double>(size);
  if (variance == 0) return 1;
  for (std::size_t lag = 1; lag <= std::min(largestLag, size / 2); ++lag) {
    // Over the pairs there are, so that a perfect repeat has 1 at every lag.
    double covariance = 0;
    for (std::size_t i = lag; i < size; ++i) covariance += (values[i] - mean) * (values[i - lag] - mean);
    if (covariance / static_cast<double>(size - lag) >= enough * variance) return lag;
  }
  return 0;
}

bool AcfPeriod::add(std::uint8_t operation) {
  values_.push_back(operation);
  if (values_.size() > window) values_.pop_front();
  ++sinceCut_;
  if (++sinceEvaluation_ >= evaluationInterval) {
    sinceEvaluation_ = 0;
    const std::vector<double> values(values_.begin(), values_.end());
    if (const std::size_t found = firstCorrelatedLag(values, largestLag); found != period_) {
      period_ = found;
      sinceCut_ = 0;
    }
  }
  if (period_ == 0 || sinceCut_ < period_) return false;
  sinceCut_ = 0;
  return true;
}

void AcfPeriod::reset() {
  values_.clear();
  period_ = sinceCut_ = sinceEvaluation_ = 0;
}

}  // namespace falcon::instrument
