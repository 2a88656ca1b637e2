#include "instrument/work_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/median.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t usualSamples = 8;
/// So many iterations tell the power, from the first of these numbers on.
constexpr std::size_t powerEvery = 16, powerSamples = 128;
/// Neighbours whose work differs by less say nothing about the power, and so do fewer of them.
constexpr double leastDifference = 0.02;
constexpr std::size_t leastDifferences = 8;
/// Attention grows with the square of a sequence's length.
constexpr double mostPower = 2;
/// So many iterations in a row, and the job has begun to tell its work, or ended.
constexpr int lastingOthers = 8;

}  // namespace

std::optional<double> WorkPace::add(double time, double work) {
  if (!(time > 0)) return std::nullopt;
  const bool told = work > 0;
  if (!told_) told_ = told;
  if (told != *told_) {
    if (++others_ < lastingOthers) return std::nullopt;
    const int generation = generation_ + 1;
    *this = WorkPace();
    told_ = told;
    generation_ = generation;
  }
  others_ = 0;
  if (!told) return time;
  if (usual_ == 0) {
    first_.push_back(work);
    if (first_.size() == usualSamples) usual_ = median(std::exchange(first_, {}));
  }
  if (seen_.size() < powerSamples) {
    seen_.push_back({std::log(work), std::log(time)});
    if (seen_.size() % powerEvery == 0) learnPower();
  }
  if (usual_ == 0) return std::nullopt;
  return judged(time, work);
}

double WorkPace::judged(double time, double work) const {
  return usual_ > 0 && work > 0 ? time * std::pow(usual_ / work, power_) : time;
}

/// The median of the slopes between neighbours, each counting by how much its work differs: a level that changes, or a
/// spike, is in few of them.
void WorkPace::learnPower() {
  struct Slope {
    double slope, weight;
  };
  std::vector<Slope> slopes;
  double half = 0;
  for (std::size_t i = 1; i < seen_.size(); ++i) {
    const double more = seen_[i].work - seen_[i - 1].work;
    if (std::abs(more) < leastDifference) continue;
    slopes.push_back({(seen_[i].time - seen_[i - 1].time) / more, std::abs(more)});
    half += std::abs(more) / 2;
  }
  if (slopes.size() < leastDifferences) return;
  std::sort(slopes.begin(), slopes.end(), [](const Slope& a, const Slope& b) { return a.slope < b.slope; });
  auto middle = slopes.begin();
  for (double sum = middle->weight; sum < half && middle + 1 != slopes.end(); sum += middle->weight) ++middle;
  power_ = std::clamp(middle->slope, 0.0, mostPower);
}

}  // namespace falcon::instrument
