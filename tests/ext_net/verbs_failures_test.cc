// What goes wrong over verbs once the ends have met.
#include <gmock/gmock.h>

#include "ext_net/verbs_fixture.h"

namespace falcon::net::test {
namespace {

using testing::HasSubstr;

/// With a receive and a send under way that nothing has moved yet.
class VerbsFailures : public OverFakeVerbs {
 protected:
  void begin() {
    fake_.hold(true);
    receive_ = *ends().receiver->start(to_.data(), to_.size(), toMark().get());
    send_ = *ends().sender->start(from_.data(), from_.size(), fromMark().get());
    ASSERT_TRUE(receive_ && send_);
  }
  void TearDown() override {
    toMark_.reset();
    fromMark_.reset();
    OverFakeVerbs::TearDown();
  }
  Mark& toMark() {
    if (!toMark_) toMark_ = std::make_unique<Mark>(*ends().receiver, to_);
    return *toMark_;
  }
  Mark& fromMark() {
    if (!fromMark_) fromMark_ = std::make_unique<Mark>(*ends().sender, from_);
    return *fromMark_;
  }
  /// Tests it, and lets 50 ms pass each time, until it fails; after how many seconds that was.
  double failsAfter(Request* request, ErrorCode code, const std::string& words) {
    const Nanoseconds since = clock_.now();
    std::size_t bytes = 0;
    while (seconds(clock_.now() - since) < 20) {
      const auto tested = request->test(bytes);
      if (!tested) {
        EXPECT_EQ(tested.error().code(), code) << tested.error().message();
        EXPECT_THAT(tested.error().message(), HasSubstr(words));
        const auto again = request->test(bytes);
        EXPECT_FALSE(again);
        if (!again) {
          EXPECT_EQ(again.error().message(), tested.error().message()) << "the first error stays";
        }
        return seconds(clock_.now() - since);
      }
      if (*tested) break;
      clock_.advance(50ms);
    }
    ADD_FAILURE() << "it has not failed";
    return 0;
  }

  Bytes from_ = patternOf(1000, 1), to_ = Bytes(1000);
  std::unique_ptr<Mark> fromMark_, toMark_;
  Request *receive_ = nullptr, *send_ = nullptr;
};

TEST_F(VerbsFailures, APeerThatAcknowledgesNothingIsARemoteError) {
  begin();
  fake_.disconnect();
  fake_.hold(false);
  failsAfter(receive_, ErrorCode::remote, "NCCL_IB_TIMEOUT=15, NCCL_IB_RETRY_CNT=7");
}

TEST_F(VerbsFailures, AWriteThatIsNotAcknowledgedIsARemoteError) {
  begin();
  const std::uint32_t senders = fake_.pairs()[0];
  fake_.hold(false);
  ASSERT_TRUE(waitFor([&] {
    std::size_t bytes = 0;
    EXPECT_FALSE(*send_->test(bytes));
    return fake_.sendsOf(senders) == 1;  // it has the advert
  }));
  fake_.disconnect();
  failsAfter(send_, ErrorCode::remote, "acknowledges nothing");
}

TEST_F(VerbsFailures, APeerThatHangsUpIsARemoteErrorOfWhoWaitsForIt) {
  begin();
  fromMark_.reset();
  ends().sender.reset();
  const double took = failsAfter(receive_, ErrorCode::remote, "hung up");
  EXPECT_GE(took, 1) << "what was sent may come yet";
  EXPECT_LT(took, 5);
}

TEST_F(VerbsFailures, AReceiverThatHangsUpIsARemoteErrorOfWhoHasNoAdvert) {
  ends();
  send_ = *ends().sender->start(from_.data(), from_.size(), fromMark().get());
  ends().receiver.reset();
  const double took = failsAfter(send_, ErrorCode::remote, "hung up");
  EXPECT_GE(took, 1) << "what was acknowledged may come yet";
  EXPECT_LT(took, 5);
}

TEST_F(VerbsFailures, WhatHasComeCountsThoughThePeerIsGone) {
  begin();
  fake_.hold(false);
  ASSERT_TRUE(finish(send_));
  fromMark_.reset();
  ends().sender.reset();
  clock_.advance(10s);
  const auto got = finish(receive_);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(from_, to_);
}

TEST_F(VerbsFailures, ADeviceThatGoesAwayIsASystemErrorOfAllItsConnections) {
  begin();
  fake_.raise("mlx5_0", IBV_EVENT_DEVICE_FATAL);
  EXPECT_LT(failsAfter(receive_, ErrorCode::system, "mlx5_0 has failed"), 1);
  std::size_t bytes = 0;
  clock_.advance(1s);
  EXPECT_FALSE(*send_->test(bytes)) << "the other device is sound";
}

TEST_F(VerbsFailures, APortThatStaysDownIsASystemError) {
  begin();
  fake_.raise("mlx5_0", IBV_EVENT_PORT_ERR);
  const double took = failsAfter(receive_, ErrorCode::system, "NCCL_FALCON_DEATH_TIMEOUT");
  EXPECT_GE(took, 4);
  EXPECT_LT(took, 5);
}

TEST_F(VerbsFailures, APortThatIsUpAgainInTimeIsNone) {
  begin();
  std::size_t bytes = 0;
  for (int round = 0; round < 3; ++round) {
    fake_.raise("mlx5_0", IBV_EVENT_PORT_ERR);
    for (int i = 0; i < 30; ++i, clock_.advance(100ms)) ASSERT_FALSE(*receive_->test(bytes));
    fake_.raise("mlx5_0", IBV_EVENT_PORT_ACTIVE);
    for (int i = 0; i < 3; ++i, clock_.advance(100ms)) ASSERT_FALSE(*receive_->test(bytes));
  }
  fake_.hold(false);
  bool isSent = false, isReceived = false;
  EXPECT_TRUE(waitFor([&] {
    isSent = isSent || *send_->test(bytes);
    isReceived = isReceived || *receive_->test(bytes);
    return isSent && isReceived;
  }));
}

TEST_F(VerbsFailures, AnotherPortThatIsDownIsNone) {
  begin();
  fake_.raise("mlx5_0", IBV_EVENT_PORT_ERR, 2);
  std::size_t bytes = 0;
  for (int i = 0; i < 100; ++i, clock_.advance(100ms)) ASSERT_FALSE(*receive_->test(bytes));
}

TEST_F(VerbsFailures, AQueuePairThatIsBrokenEndsItsConnectionOnly) {
  begin();
  const auto pairs = fake_.pairs();  // the sender's, the receiver's
  Ends others(over(), 0, 1);
  fake_.raiseOf(pairs[1], IBV_EVENT_QP_FATAL);
  failsAfter(receive_, ErrorCode::remote, "queue pair is broken");
  fake_.hold(false);
  ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(others, 100, 2));
}

TEST_F(VerbsFailures, ACompletionQueueThatIsBrokenIsASystemError) {
  begin();
  fake_.fail("poll", EIO, -1);
  failsAfter(receive_, ErrorCode::system, "completion queue");
}

TEST_F(VerbsFailures, ADeviceThatTakesNoMoreWorkIsASystemErrorOfTheTest) {
  ends();
  fake_.fail("postSend", ENOMEM);
  receive_ = *ends().receiver->start(to_.data(), to_.size(), toMark().get());
  ASSERT_TRUE(receive_) << "what fails is told by test(), where NCCL looks for it";
  failsAfter(receive_, ErrorCode::system, "takes nothing to send");
}

TEST_F(VerbsFailures, MemoryThatIsNoLongerRegisteredEndsTheConnection) {
  begin();
  toMark_.reset();
  fake_.hold(false);
  failsAfter(send_, ErrorCode::remote, "does not let us write");
  failsAfter(receive_, ErrorCode::remote, "is lost");
}

TEST_F(VerbsFailures, MemoryThatIsNotTakenSaysWhatToDo) {
  ends();
  fake_.fail("registerMemory", ENOMEM);
  const auto made = ends().sender->registerMemory(from_.data(), from_.size(), transport::net::hostMemory);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::system);
  EXPECT_THAT(made.error().message(), testing::AllOf(HasSubstr("1000 bytes"), HasSubstr("ulimit -l")));
  EXPECT_TRUE(fromMark().get()) << "the connection is sound";
}

}  // namespace
}  // namespace falcon::net::test
