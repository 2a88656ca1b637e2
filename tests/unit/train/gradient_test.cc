// The backward pass against finite differences, every parameter of a small model, in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "train/markov_source.h"
#include "train/stage.h"

namespace falcon::train {
namespace {

struct Shape {
  const char* name;
  ModelShape shape;
};

class Gradient : public testing::TestWithParam<Shape> {};

TEST_P(Gradient, IsTheSlopeOfTheLossForEveryParameter) {
  const ModelShape shape = GetParam().shape;
  constexpr double scale = 0.37;
  constexpr double step = 1e-4;
  NoReducer<double> alone;
  Stage<double> model(shape, 5, {}, {}, 1, alone);
  // Biases and gains away from 0 and 1, so that no term of their gradients vanishes.
  for (auto& bucket : model.buckets()) {
    for (std::size_t i = 0; i < bucket.count(); ++i) bucket.values()[i] += 0.1 * std::sin(static_cast<double>(i));
  }
  const MicroBatch batch = MarkovSource(3, shape.vocabulary).batch(0, 0, shape.microBatchSize, shape.sequence);
  std::vector<double> x(model.activationCount());
  const auto loss = [&] { return scale * model.forward(0, batch, x.data()); };
  loss();
  model.backward(0, batch, scale, x.data());

  for (std::size_t b = 0; b < model.buckets().size(); ++b) {
    auto& bucket = model.buckets()[b];
    double largest = 0;
    for (std::size_t i = 0; i < bucket.count(); ++i) {
      double& value = bucket.values()[i];
      const double original = value;
      const auto lossAt = [&](double offset) {
        value = original + offset;
        return loss();
      };
      // Of fourth order: behind a norm of small values, third derivatives are large.
      const double slope = (8 * (lossAt(step) - lossAt(-step)) - (lossAt(2 * step) - lossAt(-2 * step))) / (12 * step);
      value = original;
      ASSERT_NEAR(bucket.gradients()[i], slope, 1e-9 + 1e-6 * std::abs(slope)) << "bucket " << b << ", parameter " << i;
      largest = std::max(largest, std::abs(slope));
    }
    EXPECT_GT(largest, 1e-3) << "bucket " << b << " does not matter to the loss: the test shows nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gradient,
                         testing::Values(Shape{"small", {2, 8, 2, 5, 7, 2}}, Shape{"oneHead", {1, 6, 1, 4, 5, 1}},
                                         Shape{"manyHeads", {1, 12, 6, 3, 9, 3}},
                                         Shape{"oneToken", {1, 4, 2, 1, 6, 2}}),
                         [](const auto& one) { return one.param.name; });

TEST(Backward, AddsToTheGradientsOfEarlierMicroBatches) {
  const ModelShape shape{2, 8, 2, 5, 7, 2};
  NoReducer<double> alone;
  const MarkovSource source(3, shape.vocabulary);
  const auto gradientsOf = [&](std::initializer_list<int> batches) {
    Stage<double> model(shape, 5, {}, {}, 1, alone);
    std::vector<double> x(model.activationCount());
    for (const int index : batches) {
      const MicroBatch batch = source.batch(0, index, shape.microBatchSize, shape.sequence);
      model.forward(0, batch, x.data());
      model.backward(0, batch, 1, x.data());
    }
    return model.buckets()[1].gradients();
  };
  const auto first = gradientsOf({0}), second = gradientsOf({1}), both = gradientsOf({0, 1});
  for (std::size_t i = 0; i < both.size(); ++i) ASSERT_NEAR(both[i], first[i] + second[i], 1e-12);
}

TEST(Attention, NeverLooksAhead) {
  const ModelShape shape{2, 8, 2, 6, 11, 1};
  NoReducer<double> alone;
  Stage<double> model(shape, 5, {}, {}, 1, alone);
  std::vector<double> x(model.activationCount());
  MicroBatch batch = MarkovSource(3, shape.vocabulary).batch(0, 0, 1, shape.sequence);
  // Only the first target counts when all later inputs change: its loss must not.
  const auto lossOfFirst = [&] {
    MicroBatch one = batch;
    const double before = model.forward(0, one, x.data());
    one.targets[0] = (one.targets[0] + 1) % shape.vocabulary;
    return before - model.forward(0, one, x.data());
  };
  const double original = lossOfFirst();
  for (int i = 1; i < shape.sequence; ++i) batch.inputs[i] = (batch.inputs[i] + 3) % shape.vocabulary;
  EXPECT_NEAR(lossOfFirst(), original, 1e-12);
  batch.inputs[0] = (batch.inputs[0] + 3) % shape.vocabulary;
  EXPECT_GT(std::abs(lossOfFirst() - original), 1e-6);
}

}  // namespace
}  // namespace falcon::train
