#include "instrument/noise_estimate.h"

#include <algorithm>
#include <cmath>

namespace falcon::instrument {
namespace {

constexpr std::size_t renewEvery = 8;
/// More is a level that moved.
constexpr double mostCorrelation = 0.5;
/// Of normal values of which the largest tenth was cut to the rest's size.
constexpr double cutToNormal = 1.0967;
/// Of three quarters of the values; more than three times as much is no part of the same noise, though there be more
/// than a tenth of it. (The ninth tenth of Student's with 2 degrees of freedom reaches 1.8 times as far.)
constexpr double coreShare = 0.75, farFromCore = 3;
/// Reached by the ninth tenth of normal values, in the same unit.
constexpr double normalTenth = 1.43;
/// Of fewer values three quarters may be of one mode by chance.
constexpr std::size_t leastForCore = 32;

}  // namespace

void NoiseEstimate::add(double residual) {
  if (values_.size() < kept_) {
    values_.push_back(residual);
    next_ = values_.size() % kept_;
  } else {
    values_[next_] = residual;
    next_ = (next_ + 1) % kept_;
  }
  if (++sinceRenewed_ >= renewEvery || values_.size() < 2 * renewEvery) renew();
}

void NoiseEstimate::clear() {
  values_.clear();
  next_ = sinceRenewed_ = 0;
  deviation_ = 0;
  memory_ = 1;
}

void NoiseEstimate::renew() {
  sinceRenewed_ = 0;
  if (values_.empty()) return;
  std::vector<double> sizes(values_.size());
  std::transform(values_.begin(), values_.end(), sizes.begin(), [](double value) { return std::abs(value); });
  const auto size = static_cast<double>(sizes.size());
  const auto kept = static_cast<std::ptrdiff_t>(std::ceil(0.9 * size));  // of few values too the largest is cut
  const auto limit =
      sizes.begin() + std::max<std::ptrdiff_t>(std::min<std::ptrdiff_t>(kept, std::ssize(sizes) - 1) - 1, 0);
  std::nth_element(sizes.begin(), limit, sizes.end());
  double most = *limit;
  if (sizes.size() >= leastForCore) {
    const auto core = sizes.begin() + static_cast<std::ptrdiff_t>(coreShare * size);
    std::nth_element(sizes.begin(), core, limit);
    if (*core > 0 && most > farFromCore * *core) most = normalTenth * *core;
  }
  double squares = 0;
  for (const double value : sizes) squares += std::min(value, most) * std::min(value, most);
  // Few values know it badly.
  deviation_ = cutToNormal * std::sqrt(squares / size) * (1 + 2 / size);
  const double shared = correlation();
  memory_ = std::sqrt((1 + shared) / (1 - shared));
}

/// Of neighbours, where positive, clear or not: a little sensitivity is lost where it is chance, and a false alarm
/// avoided where it is not.
double NoiseEstimate::correlation() const {
  if (values_.size() < 2 * renewEvery) return 0;
  const double limit = 3 * deviation_;  // a spike is no memory
  double products = 0, squares = 0, before = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::size_t at = values_.size() < kept_ ? i : (next_ + i) % kept_;
    const double now = std::clamp(values_[at], -limit, limit);
    products += before * now;
    squares += now * now;
    before = now;
  }
  const double found = squares > 0 ? std::min(products / squares, mostCorrelation) : 0;
  return std::max(found, 0.0);
}

}  // namespace falcon::instrument
