#include "instrument/robust_centre.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t fewValues = 6, someValues = 16;

double medianOfPairs(const std::vector<double>& values) {
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = i; k < values.size(); ++k) means.push_back((values[i] + values[k]) / 2);
  return median(std::move(means), 0);
}

}  // namespace

double robustCentre(const std::vector<double>& values, double deviation) {
  if (values.size() >= fewValues && values.size() <= someValues) return medianOfPairs(values);
  const double middle = median(values, 0);
  if (values.size() < fewValues) return middle;
  double sum = 0;
  for (const double value : values) sum += std::clamp(value - middle, -3 * deviation, 3 * deviation);
  return middle + sum / static_cast<double>(values.size());
}

double plainDeviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace falcon::instrument
