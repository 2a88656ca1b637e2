#include "train/adam.h"

#include <algorithm>
#include <cmath>

namespace falcon::train {

void Adam::step(std::span<float> values, std::span<const float> gradients) {
  ++steps_;
  const double warmth = std::min(1.0, static_cast<double>(steps_) / settings_.warmUpSteps);
  const auto rate = static_cast<float>(warmth * settings_.learningRate / (1 - std::pow(settings_.firstDecay, steps_)));
  const auto secondScale = static_cast<float>(1 / (1 - std::pow(settings_.secondDecay, steps_)));
  const auto firstDecay = static_cast<float>(settings_.firstDecay);
  const auto secondDecay = static_cast<float>(settings_.secondDecay);
  const auto epsilon = static_cast<float>(settings_.epsilon);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float gradient = gradients[i];
    first_[i] = firstDecay * first_[i] + (1 - firstDecay) * gradient;
    second_[i] = secondDecay * second_[i] + (1 - secondDecay) * gradient * gradient;
    values[i] -= rate * first_[i] / (std::sqrt(second_[i] * secondScale) + epsilon);
  }
}

}  // namespace falcon::train
