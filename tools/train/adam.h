// Adam (Kingma and Ba, arXiv 1412.6980), for one bucket of parameters. Element by element, so every replica stays bit
// for bit the same as long as the gradients are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace falcon::train {

struct AdamSettings {
  double learningRate = 3e-3;
  double firstDecay = 0.9;
  double secondDecay = 0.99;
  /// Large for Adam: gradients that are noise of the order of summation must not become full steps, or the loss curve
  /// would depend on the split.
  double epsilon = 1e-5;
  /// The rate grows over this many steps: Adam's first steps are large whatever the gradients.
  int warmUpSteps = 10;
};

class Adam {
 public:
  Adam(std::size_t parameters, const AdamSettings& settings)
      : settings_(settings), first_(parameters), second_(parameters) {}

  void step(std::span<float> values, std::span<const float> gradients);

  // What a checkpoint keeps beside the parameters.
  std::span<float> firstMoments() { return first_; }
  std::span<float> secondMoments() { return second_; }
  int& steps() { return steps_; }

 private:
  AdamSettings settings_;
  int steps_ = 0;
  std::vector<float> first_;
  std::vector<float> second_;
};

}  // namespace falcon::train
