#include "instrument/spike_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace falcon::instrument {
namespace {

/// Of all samples: more of them are a mode of the healthy ones.
constexpr double mostBursts = 0.2;
/// A burst of spikes is remembered for so many samples.
constexpr std::int64_t burstsCount = 2000;

}  // namespace

double SpikeModel::outlierRate() const {
  return std::clamp((0.1 + spikes_) / (20 + watched_), 1e-3, 0.2);
}

double SpikeModel::burstHeight(std::int64_t added) const {
  return added - burstAt_ < burstsCount ? burstHeight_ : 0;
}

bool SpikeModel::inBursts() const {
  return longestBurst_ > 1 && rate() < mostBursts;
}

int SpikeModel::lastingSamples(double distance, std::int64_t added) const {
  const int byRate = static_cast<int>(std::ceil(std::log(6e-7) / std::log(rate())));
  const int byBurst = added - burstAt_ < burstsCount ? longestBurst_ + 2 : 0;
  const bool young = watched_ < 48 && std::abs(distance) < limits_.large();
  const int byAge = !young ? shortestChange : otherMode_ == 0 ? 5 : otherMode_ == 1 ? 7 : 12;
  return std::max(std::clamp(std::max(byRate, byBurst), shortestChange, movedSamples), byAge);
}

void SpikeModel::noteBurst(int length, double height, std::int64_t added) {
  const bool lately = added - burstAt_ < burstsCount;
  burstHeight_ = lately ? std::max(burstHeight_, height) : height;
  if (length < longestBurst_ && lately) return;
  longestBurst_ = length;
  burstAt_ = added;
}

void SpikeModel::addBurst(int length, double height, std::int64_t added) {
  noteBurst(length, height, added);
  spikes_ += length;
}

void SpikeModel::add(double distance, double deviation, std::int64_t sample) {
  const double near = std::max(0.75 * limits_.threshold, 3.5 * deviation);
  const int side = std::abs(distance) < near ? 0 : distance > 0 ? 1 : -1;
  watched_ = 0.999 * watched_ + 1;
  spikes_ *= 0.999;
  if (side == 0 || side * streak_ < 0) {
    const int burst = std::abs(streak_);  // the streak has ended without a change: it was spikes
    const bool warmUp = sample <= warmUpSamples && distanceOfStreak_ > limits_.large();
    if (!warmUp) spikes_ += burst;
    if (!warmUp && burst > 1 && burst < movedSamples) noteBurst(burst, distanceOfStreak_, sample);
    if (distanceOfStreak_ < limits_.large()) otherMode_ += burst;
    streak_ = 0;
  }
  streak_ += side;
  distanceOfStreak_ = std::abs(distance);
}

void SpikeModel::forgive(std::int64_t count) {
  spikes_ = std::max(0.0, spikes_ - static_cast<double>(count));
  streak_ = 0;
}

void SpikeModel::calm() {
  spikes_ = 0;
  streak_ = longestBurst_ = 0;
}

void SpikeModel::restart() {
  calm();
  watched_ = 0;
}

void SpikeModel::rebase() {
  streak_ = longestBurst_ = 0;
  burstAt_ = 0;
  burstHeight_ = 0;
}

void HealthyVisits::add(bool isHealthy) {
  slowSamples_ = 0.99 * slowSamples_ + 1;
  visits_ *= 0.99;
  if (isHealthy) {
    ++visit_;
  } else {
    visits_ += visit_;
    visit_ = 0;
  }
}

}  // namespace falcon::instrument
