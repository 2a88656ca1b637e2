#include "instrument/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/median.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t leastValues = 24, leastOfLevel = 3;
constexpr double clearlyLess = 0.75;

/// Spikes cut to `most` beside the median of the values around.
std::vector<double> withoutSpikes(const std::vector<double>& values, double most) {
  constexpr std::size_t around = 4;
  std::vector<double> cut;
  cut.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(i - std::min(i, around));
    const auto to = values.begin() + static_cast<std::ptrdiff_t>(std::min(i + around + 1, values.size()));
    const double middle = median({from, to});
    cut.push_back(std::clamp(values[i], middle - most, middle + most));
  }
  return cut;
}

}  // namespace

bool growsSteadily(const std::vector<double>& values, double most) {
  const std::size_t size = values.size();
  if (size < leastValues) return false;
  const auto y = withoutSpikes(values, most);
  const auto count = static_cast<double>(size);
  double sum = 0, squares = 0, products = 0;
  for (std::size_t i = 0; i < size; ++i) {
    sum += y[i];
    squares += y[i] * y[i];
    products += static_cast<double>(i) * y[i];
  }
  const double middle = (count - 1) / 2, spread = count * (count * count - 1) / 12;
  const double slope = (products - middle * sum) / spread;
  if (slope <= 0) return false;
  const double ofLevel = squares - sum * sum / count, ofLine = ofLevel - slope * slope * spread;
  double before = 0, ofStep = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + leastOfLevel < size; ++i) {
    before += y[i];
    if (i + 1 < leastOfLevel) continue;
    const double first = static_cast<double>(i + 1), after = sum - before;
    ofStep = std::min(ofStep, squares - before * before / first - after * after / (count - first));
  }
  return ofLine < clearlyLess * ofStep;
}

}  // namespace falcon::instrument
