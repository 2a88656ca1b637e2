// Any split over data, pipeline and tensor parallel ranks trains the same model: loss curves in f64, ranks as threads.
#include <gtest/gtest.h>

#include <deque>

#include "thread_ranks.h"
#include "train/layout.h"
#include "train/markov_source.h"
#include "train/schedule.h"

namespace falcon::train {
namespace {

struct SplitCase {
  int data, pipeline, tensor;
  std::vector<int> microBatches;  ///< of each replica; empty: the equal split
};

constexpr int microBatches = 7;
constexpr int iterations = 3;
const ModelShape shape{4, 16, 4, 6, 9, 2};

MicroBatchRange shareOf(const SplitCase& split, int replica) {
  if (split.microBatches.empty()) return equalShare(microBatches, {replica, split.data});
  MicroBatchRange range{0, split.microBatches[replica]};
  for (int i = 0; i < replica; ++i) range.first += split.microBatches[i];
  return range;
}

/// The mean loss of each iteration, with plain gradient descent.
std::vector<double> train(const SplitCase& split) {
  const int ranks = split.data * split.pipeline * split.tensor;
  std::deque<SharedSum> dataSums, tensorSums;
  for (int i = 0; i < split.pipeline * split.tensor; ++i) dataSums.emplace_back(split.data);
  for (int i = 0; i < split.data * split.pipeline; ++i) tensorSums.emplace_back(split.tensor);
  std::vector<Mailboxes> mailboxes(static_cast<std::size_t>(split.data) * split.tensor);
  SharedSum everyone(ranks);
  std::vector<double> losses(iterations);
  const MarkovSource source(3, shape.vocabulary);

  runRanks(ranks, [&](int rank) {
    const RankParts layout = layoutOf(rank, split.data, split.pipeline, split.tensor);
    ThreadReducer reducer(tensorSums[layout.data.index * split.pipeline + layout.pipeline.index], layout.tensor.index);
    ThreadLink link(mailboxes[layout.data.index * split.tensor + layout.tensor.index], layout.pipeline.index);
    Stage<double> stage(shape, 5, layout.pipeline, layout.tensor, pipelineSlots(layout.pipeline), reducer);
    Pipeline<double> pipeline(stage, layout.pipeline, link);
    const MicroBatchRange share = shareOf(split, layout.data.index);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (auto& bucket : stage.buckets()) bucket.clearGradients();
      std::size_t left = stage.buckets().size();
      double loss = pipeline.run(
          share.count, 1.0 / microBatches,
          [&](int index) { return source.batch(iteration, share.first + index, shape.microBatchSize, shape.sequence); },
          [&](std::size_t done) {
            EXPECT_EQ(done, --left);
            auto& bucket = stage.buckets()[done];
            dataSums[layout.pipeline.index * split.tensor + layout.tensor.index].sum(
                layout.data.index, bucket.gradients().data(), bucket.count());
          });
      EXPECT_EQ(left, 0u);
      for (auto& bucket : stage.buckets())
        for (std::size_t i = 0; i < bucket.count(); ++i) bucket.values()[i] -= 0.5 * bucket.gradients()[i];
      if (!stage.last() || layout.tensor.index != 0) loss = 0;
      everyone.sum(rank, &loss, 1);
      if (rank == 0) losses[iteration] = loss / microBatches;
    }
  });
  return losses;
}

class Splits : public testing::TestWithParam<SplitCase> {};

TEST_P(Splits, TrainTheSameModelAsOneRank) {
  const std::vector<double> expected = train({1, 1, 1, {}});
  ASSERT_LT(expected.back(), expected.front() - 0.05) << "nothing is learnt: the test shows nothing";
  const std::vector<double> losses = train(GetParam());
  for (int i = 0; i < iterations; ++i) EXPECT_NEAR(losses[i], expected[i], 1e-11) << "iteration " << i;
}

INSTANTIATE_TEST_SUITE_P(Layouts, Splits,
                         testing::Values(SplitCase{2, 1, 1, {}}, SplitCase{7, 1, 1, {}}, SplitCase{2, 1, 1, {6, 1}},
                                         SplitCase{3, 1, 1, {1, 4, 2}}, SplitCase{1, 2, 1, {}}, SplitCase{1, 3, 1, {}},
                                         SplitCase{1, 4, 1, {}}, SplitCase{1, 1, 2, {}}, SplitCase{1, 1, 4, {}},
                                         SplitCase{2, 2, 1, {5, 2}}, SplitCase{1, 2, 2, {}}, SplitCase{2, 1, 2, {}},
                                         SplitCase{2, 2, 2, {}}, SplitCase{2, 4, 2, {1, 6}}),
                         [](const auto& one) {
                           std::string name = "dp" + std::to_string(one.param.data) + "pp" +
                                              std::to_string(one.param.pipeline) + "tp" +
                                              std::to_string(one.param.tensor);
                           for (const int share : one.param.microBatches) name += "_" + std::to_string(share);
                           return name;
                         });

}  // namespace
}  // namespace falcon::train
