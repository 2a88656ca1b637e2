#include "control/agreement.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace falcon::control {
namespace {

/// Keeps what was said, by receiver.
class HeardOutbox final : public Outbox {
 public:
  void to(ProcessId process, const Message& message) override { heard.emplace_back(process, message); }
  void toAll(const Message& message) override { heard.emplace_back(0, message); }
  template <class T>
  std::vector<std::pair<ProcessId, T>> all() const {
    std::vector<std::pair<ProcessId, T>> found;
    for (const auto& [process, message] : heard)
      if (const T* each = std::get_if<T>(&message)) found.emplace_back(process, *each);
    return found;
  }
  std::vector<std::pair<ProcessId, Message>> heard;
};

class AgreementTest : public testing::Test {
 protected:
  ManualClock clock_;
  HeardOutbox outbox_;
  Agreement agreement_{9, {AgreementKind::ring, 4, {0, 2, 1}}, {1, 2, 3}, 8, clock_, 5s, outbox_};

  void everyoneCounts() {
    agreement_.handle(1, Counter{9, 100});
    agreement_.handle(2, Counter{9, 104});
    agreement_.handle(3, Counter{9, 90});
  }
};

TEST_F(AgreementTest, TakesEffectBeyondTheLargestCounter) {
  ASSERT_EQ(outbox_.all<AskCounter>().size(), 3u);
  everyoneCounts();
  const auto proposals = outbox_.all<Propose>();
  ASSERT_EQ(proposals.size(), 3u);
  for (const auto& [process, propose] : proposals) {
    EXPECT_EQ(propose.from, 112u);
    EXPECT_EQ(propose.values, (std::vector<std::int32_t>{0, 2, 1}));
  }
}

TEST_F(AgreementTest, CommitsOnlyWhenAllSaidYes) {
  everyoneCounts();
  agreement_.handle(1, Vote{9, true});
  agreement_.handle(2, Vote{9, true});
  agreement_.handle(2, Vote{9, true});  // twice the same voice is one voice
  EXPECT_FALSE(agreement_.finished());
  agreement_.handle(3, Vote{9, true});
  EXPECT_EQ(agreement_.state(), Agreement::State::committed);
  for (const auto& [process, decide] : outbox_.all<Decide>()) EXPECT_TRUE(decide.commit);
}

TEST_F(AgreementTest, OneNoOrOneLossAbortsForAll) {
  everyoneCounts();
  agreement_.handle(1, Vote{9, true});
  agreement_.handle(2, Vote{9, false});
  EXPECT_EQ(agreement_.state(), Agreement::State::aborted);
  ASSERT_EQ(outbox_.all<Decide>().size(), 3u);
  agreement_.handle(3, Vote{9, true});  // too late
  EXPECT_EQ(outbox_.all<Decide>().size(), 3u);
}

TEST_F(AgreementTest, ATimeoutOrADeathMeansNoChangeAnywhere) {
  agreement_.handle(1, Counter{9, 1});
  clock_.advance(6s);
  agreement_.tick();
  EXPECT_EQ(agreement_.state(), Agreement::State::aborted);

  Agreement other(10, {AgreementKind::microBatches, 0, {1, 2}}, {1, 2}, 1, clock_, 5s, outbox_);
  other.left(7);
  EXPECT_FALSE(other.finished());
  other.left(2);
  EXPECT_EQ(other.state(), Agreement::State::aborted);
}

TEST_F(AgreementTest, StrangersAndOldAnswersAreIgnored) {
  agreement_.handle(8, Counter{9, 1000});
  agreement_.handle(1, Counter{3, 1000});
  everyoneCounts();
  EXPECT_EQ(agreement_.from(), 112u);
}

}  // namespace
}  // namespace falcon::control
