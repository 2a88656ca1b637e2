#include "train/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

namespace falcon::train {
namespace {

class Schedule : public testing::TestWithParam<int> {};

TEST_P(Schedule, DoesEveryMicroBatchOnceForwardsBeforeBackwardsWithinItsSlots) {
  const int stages = GetParam();
  for (int microBatches = 1; microBatches <= 12; ++microBatches) {
    for (int index = 0; index < stages; ++index) {
      const Shard stage{index, stages};
      std::map<int, int> slots;  // slot -> micro-batch that is between its passes
      std::set<int> forwards, backwards;
      for (const PipelineStep& step : oneForwardOneBackward(stage, microBatches)) {
        const int slot = step.microBatch % pipelineSlots(stage);
        if (step.forward) {
          EXPECT_TRUE(forwards.insert(step.microBatch).second);
          EXPECT_TRUE(slots.emplace(slot, step.microBatch).second) << "slot " << slot << " is in use";
        } else {
          EXPECT_TRUE(backwards.insert(step.microBatch).second);
          ASSERT_TRUE(slots.count(slot));
          EXPECT_EQ(slots[slot], step.microBatch);
          slots.erase(slot);
        }
      }
      EXPECT_EQ(forwards.size(), static_cast<std::size_t>(microBatches));
      EXPECT_EQ(backwards, forwards);
    }
  }
}

/// One stage in a world where a send completes only when its receive is there, and an exchange only as a whole.
class StageWalk {
 public:
  StageWalk(Shard stage, int microBatches) : stage_(stage), steps_(oneForwardOneBackward(stage, microBatches)) {}

  bool finished() const { return next_ == steps_.size() + 1; }
  /// The exchange before step next_: what leaves is of the step before, what arrives is for the step.
  std::optional<PipelineStep> sending(int to) const {
    if (finished() || next_ == 0 || sent_ || targetOf(steps_[next_ - 1], stage_) != to) return {};
    return steps_[next_ - 1];
  }
  std::optional<PipelineStep> receiving(int from) const {
    if (next_ >= steps_.size() || received_ || sourceOf(steps_[next_], stage_) != from) return {};
    return steps_[next_];
  }
  void markSent() { sent_ = true; }
  void markReceived() { received_ = true; }
  bool advance() {
    if (finished()) return false;
    const bool nothingToSend = next_ == 0 || targetOf(steps_[next_ - 1], stage_) < 0;
    const bool nothingToReceive = next_ == steps_.size() || sourceOf(steps_[next_], stage_) < 0;
    if (!(sent_ || nothingToSend) || !(received_ || nothingToReceive)) return false;
    sent_ = received_ = false;
    ++next_;
    return true;
  }

 private:
  Shard stage_;
  std::vector<PipelineStep> steps_;
  std::size_t next_ = 0;
  bool sent_ = false;
  bool received_ = false;
};

TEST_P(Schedule, NeverDeadlocksWhenSendsWaitForReceivesAndBothEndsMeanTheSame) {
  const int stages = GetParam();
  for (int microBatches = 1; microBatches <= 12; ++microBatches) {
    std::vector<StageWalk> walks;
    for (int index = 0; index < stages; ++index) walks.emplace_back(Shard{index, stages}, microBatches);
    for (bool moved = true; moved;) {
      moved = false;
      for (int from = 0; from < stages; ++from) {
        for (const int to : {from - 1, from + 1}) {
          if (to < 0 || to >= stages) continue;
          const auto sent = walks[from].sending(to);
          const auto received = walks[to].receiving(from);
          if (!sent || !received) continue;
          ASSERT_EQ(*sent, *received) << "stage " << from << " to " << to;
          walks[from].markSent();
          walks[to].markReceived();
        }
      }
      for (auto& walk : walks) moved |= walk.advance();
    }
    for (int index = 0; index < stages; ++index)
      EXPECT_TRUE(walks[index].finished()) << "stage " << index << " of " << stages << ", " << microBatches;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, Schedule, testing::Range(1, 9));

}  // namespace
}  // namespace falcon::train
