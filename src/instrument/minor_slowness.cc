#include "instrument/minor_slowness.h"

#include <cmath>
#include <vector>

#include "base/median.h"
#include "instrument/robust_centre.h"

namespace falcon::instrument {
namespace {

/// So many samples tell that it is over, and are one of the parts in each of which it must have been.
constexpr std::size_t endingSamples = 50, partSamples = MinorSlowness::lasting / 8;
/// Medians of 200 samples need not be taken with every one.
constexpr std::size_t lookEvery = 5;
/// Two levels are told apart from so many standard errors on.
constexpr double minorClearOfNoise = 3;
/// What has grown steadily for 2400 iterations still grows by a sixteenth of all that within three quarters of 200; and
/// by so many standard errors.
constexpr double slowGrowth = 16, clearOfGrowth = 2;
/// Of normal values, in median distances from their middle.
constexpr double normalDeviation = 1.48;
/// A measured level scatters: of what is just at the limit, half would be missed.
constexpr double minorVerified = 0.95;

}  // namespace

void MinorSlowness::clear() {
  newest_.clear();
  active_ = false;
}

/// The other state begins: the level is known to be on the other side of the border.
MinorSlowness::Turn MinorSlowness::turn(double level, double border, double error) {
  level_ = level;
  confidence_ = 1 - std::erfc(std::abs(level - border) / (error * std::sqrt(2))) / 2;
  active_ = !active_;
  return active_ ? Turn::begins : Turn::ends;
}

double MinorSlowness::medianOf(std::size_t first, std::size_t count) const {
  const auto from = newest_.begin() + static_cast<std::ptrdiff_t>(first);
  return median(std::vector<double>(from, from + static_cast<std::ptrdiff_t>(count)));
}

/// A line through the four quarters rises: what still grows does not stay, and is an onset soon.
bool MinorSlowness::grows(double excess) const {
  constexpr std::size_t quarter = lasting / 4;
  const double level = medianOf(0, lasting);
  std::vector<double> distances;
  for (const double value : newest_) distances.push_back(std::abs(value - level));
  const double deviation = normalDeviation * median(std::move(distances));
  double quarters[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto from = newest_.begin() + static_cast<std::ptrdiff_t>(i * quarter);
    quarters[i] = robustCentre({from, from + quarter}, deviation);
  }
  // From the middle of the first to that of the last; the standard error of each is that of fifty values' mean.
  const double growth = 0.3 * (3 * (quarters[3] - quarters[0]) + quarters[2] - quarters[1]);
  const double error = 0.3 * std::sqrt(20.0 / quarter) * deviation;
  return growth > std::max(excess / slowGrowth, clearOfGrowth * error);
}

bool MinorSlowness::lasts(double healthy, double error) const {
  for (std::size_t first = 0; first < lasting; first += partSamples)
    if (medianOf(first, partSamples) < healthy + least_ / 2) return false;
  const double level = medianOf(0, lasting);
  return level >= healthy + minorVerified * least_ && level - minorClearOfNoise * error >= healthy + least_ / 2;
}

MinorSlowness::Turn MinorSlowness::add(double value, double healthy, std::int64_t healthySamples, double deviation) {
  newest_.push_back(value);
  if (newest_.size() > lasting) newest_.pop_front();
  if (++sinceLooked_ < lookEvery) return Turn::none;
  sinceLooked_ = 0;
  const std::size_t samples = active_ ? endingSamples : lasting;
  if (newest_.size() < samples || healthySamples <= 0) return Turn::none;
  const double error =
      deviation * std::sqrt(1 / static_cast<double>(healthySamples) + 1 / static_cast<double>(samples));
  const double level = medianOf(newest_.size() - samples, samples), border = healthy + least_ / 2;
  if (active_ ? level >= border : !lasts(healthy, error) || grows(level - healthy)) return Turn::none;
  // Half of those that tell the end are from before it.
  return turn(active_ ? medianOf(newest_.size() - partSamples, partSamples) : level, border, error);
}

}  // namespace falcon::instrument
