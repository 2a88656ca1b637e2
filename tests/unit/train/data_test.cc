// What all ranks must agree on without talking: initial weights, training data, the layout; and the optimiser.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "train/adam.h"
#include "train/layout.h"
#include "train/markov_source.h"
#include "train/stage.h"

namespace falcon::train {
namespace {

TEST(Parameters, PartsAreThoseOfTheWholeTensor) {
  const int rows = 12, columns = 24, blocks = 3;
  for (const Split split : {Split::none, Split::rows, Split::columns}) {
    const ParameterSpec spec{77, rows, columns, split, split == Split::columns ? blocks : 1, Initial::normal, 0.5};
    ParameterBucket<float> whole(9, {});
    const Parameter all = whole.add(spec);
    for (const int parts : {1, 2, 4}) {
      std::multiset<float> seen;
      for (int index = 0; index < parts; ++index) {
        ParameterBucket<float> bucket(9, {index, parts});
        bucket.add({1, 1, 5, Split::none, 1, Initial::ones, 0});  // an offset
        const Parameter part = bucket.add(spec);
        for (int row = 0; row < part.rows; ++row) {
          for (int column = 0; column < part.columns; ++column) {
            int globalRow = row, globalColumn = column;
            if (split == Split::rows) globalRow += index * part.rows;
            if (split == Split::columns) {
              const int width = columns / blocks / parts;
              globalColumn = column / width * (columns / blocks) + index * width + column % width;
            }
            const float value = bucket.value(part)[row * part.columns + column];
            EXPECT_EQ(value, whole.value(all)[globalRow * columns + globalColumn]);
            seen.insert(value);
          }
        }
      }
      const std::size_t copies = split == Split::none ? parts : 1;
      EXPECT_EQ(seen.size(), copies * rows * columns);
    }
  }
}

TEST(Parameters, NormalOnesHaveTheDeviationAskedFor) {
  ParameterBucket<double> bucket(4, {});
  const Parameter parameter = bucket.add({8, 100, 200, Split::none, 1, Initial::normal, 0.25});
  double sum = 0, squares = 0;
  for (const double value : bucket.values()) {
    sum += value;
    squares += value * value;
  }
  const double count = parameter.rows * parameter.columns;
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / count), 0.25, 0.01);
}

TEST(MarkovSource, DependsOnSeedIterationAndIndexOnly) {
  const MarkovSource source(1, 50);
  const auto inputs = [](const MarkovSource& from, int iteration, int index) {
    return from.batch(iteration, index, 3, 16).inputs;
  };
  EXPECT_EQ(inputs(source, 2, 5), inputs(MarkovSource(1, 50), 2, 5));
  EXPECT_NE(inputs(source, 2, 5), inputs(source, 3, 5));
  EXPECT_NE(inputs(source, 2, 5), inputs(source, 2, 6));
  EXPECT_NE(inputs(source, 2, 5), inputs(MarkovSource(2, 50), 2, 5));
}

TEST(MarkovSource, GivesEveryTokenAFewSuccessorsOneOfThemLikely) {
  const int vocabulary = 40;
  std::map<int, std::map<int, int>> successors;
  const MicroBatch batch = MarkovSource(1, vocabulary).batch(0, 0, 200, 100);
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    ++successors[batch.inputs[i]][batch.targets[i]];
    if ((i + 1) % 100 != 0) {
      ASSERT_EQ(batch.targets[i], batch.inputs[i + 1]);
    }
  }
  for (const auto& [token, counts] : successors) {
    ASSERT_TRUE(token >= 0 && token < vocabulary);
    EXPECT_LE(counts.size(), 4u);
    int all = 0, most = 0;
    for (const auto& [next, count] : counts) {
      all += count;
      most = std::max(most, count);
    }
    if (all > 200) {
      EXPECT_GT(most, 0.4 * all);
    }
  }
}

TEST(RankParts, EveryRankHasAPlaceOfItsOwnTensorFastest) {
  std::set<std::tuple<int, int, int>> places;
  for (int rank = 0; rank < 2 * 3 * 4; ++rank) {
    const RankParts layout = layoutOf(rank, 2, 3, 4);
    EXPECT_EQ((layout.data.index * 3 + layout.pipeline.index) * 4 + layout.tensor.index, rank);
    EXPECT_TRUE(layout.tensor.index < 4 && layout.pipeline.index < 3 && layout.data.index < 2);
    places.emplace(layout.data.index, layout.pipeline.index, layout.tensor.index);
  }
  EXPECT_EQ(places.size(), 24u);
}

TEST(RankParts, EqualSharesFollowEachOtherAndDifferByAtMostOne) {
  for (int replicas = 1; replicas <= 9; ++replicas) {
    for (int microBatches = replicas; microBatches <= 30; ++microBatches) {
      int next = 0;
      for (int index = 0; index < replicas; ++index) {
        const MicroBatchRange share = equalShare(microBatches, {index, replicas});
        EXPECT_EQ(share.first, next);
        EXPECT_GE(share.count, microBatches / replicas);
        EXPECT_LE(share.count, (microBatches + replicas - 1) / replicas);
        next += share.count;
      }
      EXPECT_EQ(next, microBatches);
    }
  }
}

TEST(Adam, FollowsThePaperWithAWarmUp) {
  const AdamSettings settings{0.01, 0.9, 0.99, 1e-5, 4};
  Adam adam(2, settings);
  std::vector<float> values{1, -2};
  double expected[] = {1, -2}, first[] = {0, 0}, second[] = {0, 0};
  for (int step = 1; step <= 20; ++step) {
    const float gradients[] = {0.3f * step, -1.0f / step};
    adam.step(values, gradients);
    for (int i = 0; i < 2; ++i) {
      first[i] = 0.9 * first[i] + 0.1 * gradients[i];
      second[i] = 0.99 * second[i] + 0.01 * gradients[i] * gradients[i];
      const double mean = first[i] / (1 - std::pow(0.9, step));
      expected[i] -=
          0.01 * std::min(1.0, step / 4.0) * mean / (std::sqrt(second[i] / (1 - std::pow(0.99, step))) + 1e-5);
      ASSERT_NEAR(values[i], expected[i], 1e-5) << "step " << step;
    }
  }
}

TEST(Training, LearnsTheChain) {
  const ModelShape shape{2, 32, 4, 16, 24, 4};
  NoReducer<float> alone;
  Stage<float> model(shape, 1, {}, {}, 1, alone);
  const MarkovSource source(1, shape.vocabulary);
  std::deque<Adam> optimisers;
  for (auto& bucket : model.buckets()) optimisers.emplace_back(bucket.count(), AdamSettings{});
  std::vector<float> x(model.activationCount());
  double first = 0, loss = 0;
  for (int iteration = 0; iteration < 150; ++iteration) {
    const MicroBatch batch = source.batch(iteration, 0, shape.microBatchSize, shape.sequence);
    for (auto& bucket : model.buckets()) bucket.clearGradients();
    loss = model.forward(0, batch, x.data());
    if (iteration == 0) first = loss;
    model.backward(0, batch, 1, x.data());
    for (std::size_t i = 0; i < optimisers.size(); ++i)
      optimisers[i].step(model.buckets()[i].values(), model.buckets()[i].gradients());
  }
  EXPECT_GT(first, 2.8);  // about log(24) = 3.18: it knows nothing
  EXPECT_LT(loss, 1.7);   // the chain's entropy is 1.2
}

}  // namespace
}  // namespace falcon::train
