// How the controller brings a job to be held: by freezing, or by draining where a communicator is the vendor's.
#include "control/closing.h"

#include <gtest/gtest.h>

#include <map>

namespace falcon::control {
namespace {

constexpr std::uint64_t trap = 9;
constexpr CommunicatorId world = 7;

/// A job of processes 1, 2 and 3, which are ranks 0, 1 and 2 of a communicator; the test plays the members.
class ClosingTest : public testing::Test, public Outbox {
 protected:
  ClosingTest() {
    for (const ProcessId process : {1, 2, 3}) job_.handle(process, Introduce{static_cast<Rank>(process) - 1});
  }
  void to(ProcessId process, const Message& message) override {
    if (const auto* targets = std::get_if<DrainTargets>(&message)) told_[process] = *targets;
  }
  void toAll(const Message& message) override {
    if (const auto* close = std::get_if<CloseTrap>(&message)) closes_.push_back(*close);
  }

  void form(bool hostEngine) { job_.handle(1, CommunicatorFormed{world, hostEngine, {0, 1, 2}, {}, {}, {}}); }
  Closing close() { return Closing({trap, 10, true}, job_, *this); }
  /// Process 1, 2 or 3 says how many collectives it has entered, knowing what it was told last.
  DrainState state(ProcessId process, std::uint64_t collectives, bool below, bool held) {
    const auto known = told_.find(process);
    const std::uint64_t version = known == told_.end() ? 1 : known->second.version;
    DrainState state{trap, version, below, held, {}, {{world, static_cast<Rank>(process) - 1}}};
    if (collectives > 0) state.entered.push_back({world, -1, -1, collectives});
    return state;
  }

  JobView job_;
  std::vector<CloseTrap> closes_;
  std::map<ProcessId, DrainTargets> told_;
};

TEST_F(ClosingTest, FreezesWhereAllCommunicatorsAreTheHostEngines) {
  form(true);
  Closing closing = close();
  ASSERT_EQ(closes_.size(), 1u);
  EXPECT_FALSE(closes_[0].drain);
  closing.handle(1, TrapState{trap, true});
  closing.handle(2, TrapState{trap - 1, true});
  closing.handle(3, TrapState{trap, true});
  EXPECT_FALSE(closing.isDone());
  EXPECT_EQ(closing.whatIsMissing(), "rank 1 did not come into the library");
  closing.handle(2, TrapState{trap, true});
  EXPECT_TRUE(closing.isDone());
}

TEST_F(ClosingTest, DrainsUntilAllHaveEnteredAsMuchAndAreHeld) {
  form(false);
  Closing closing = close();
  ASSERT_EQ(closes_.size(), 1u);
  EXPECT_TRUE(closes_[0].drain);
  for (const ProcessId process : {1, 2, 3}) closing.handle(process, state(process, process == 2 ? 5 : 4, false, true));
  EXPECT_FALSE(closing.isDone()) << "process 2 has entered one more";
  closing.tick();
  ASSERT_EQ(told_.size(), 3u);
  ASSERT_EQ(told_[1].targets.size(), 1u);
  EXPECT_EQ(told_[1].targets[0].count, 5u);
  closing.handle(2, state(2, 5, false, true));
  closing.handle(1, state(1, 4, true, false));
  closing.handle(3, state(3, 5, false, true));
  EXPECT_FALSE(closing.isDone());
  EXPECT_EQ(closing.whatIsMissing(), "rank 0 had to make calls that others are waiting in, and did not");
  closing.handle(1, state(1, 5, false, false));
  EXPECT_FALSE(closing.isDone()) << "it is inside still";
  closing.handle(1, state(1, 5, false, true));
  EXPECT_TRUE(closing.isDone());
}

TEST_F(ClosingTest, WaitsForDevicesThatWorkAndNamesThem) {
  form(false);
  Closing closing = close();
  for (const ProcessId process : {1, 2, 3}) closing.handle(process, state(process, 4, false, false));
  closing.tick();
  for (const ProcessId process : {1, 2}) {
    DrainState working = state(process, 4, false, false);
    working.working = true;
    closing.handle(process, working);
  }
  EXPECT_EQ(closing.whatIsMissing(), "rank 2 did not come into the library");
  closing.handle(3, state(3, 4, false, true));
  EXPECT_FALSE(closing.isDone());
  EXPECT_EQ(closing.whatIsMissing(), "what rank 0, rank 1 had launched on the device did not come to its end");
  closing.handle(1, state(1, 4, false, true));
  EXPECT_EQ(closing.whatIsMissing(), "what rank 1 had launched on the device did not come to its end");
  closing.handle(2, state(2, 4, false, true));
  EXPECT_TRUE(closing.isDone());
}

TEST_F(ClosingTest, WhatWasSaidOfOlderTargetsDoesNotCount) {
  form(false);
  Closing closing = close();
  for (const ProcessId process : {1, 2, 3}) closing.handle(process, state(process, 4, false, true));
  closing.tick();
  for (const ProcessId process : {1, 2}) closing.handle(process, state(process, 4, false, true));
  closing.handle(3, state(3, 5, false, true));  // its next one was on the way in
  closing.tick();
  EXPECT_FALSE(closing.isDone());
  closing.handle(3, state(3, 5, false, true));
  closing.handle(1, state(1, 5, false, true));
  EXPECT_FALSE(closing.isDone());
  closing.handle(2, state(2, 5, false, true));
  EXPECT_TRUE(closing.isDone());
}

TEST_F(ClosingTest, AMemberThatHasToDrainMakesAllDrain) {
  form(true);
  Closing closing = close();
  closing.handle(1, TrapState{trap, true});
  closing.handle(3, TrapState{trap, true});
  closing.handle(2, state(2, 1, false, true));
  ASSERT_EQ(closes_.size(), 2u);
  EXPECT_TRUE(closes_[1].drain);
  EXPECT_EQ(closes_[1].trap, trap);
  EXPECT_FALSE(closing.isDone()) << "who was frozen drains too";
  closing.handle(1, TrapState{trap, true});
  EXPECT_FALSE(closing.isDone());
}

TEST_F(ClosingTest, OneThatJoinsIsToldEverythingAndWaitedForAndOneThatLeavesIsNot) {
  form(false);
  Closing closing = close();
  for (const ProcessId process : {1, 2, 3}) closing.handle(process, state(process, 4, false, true));
  closing.tick();
  for (const ProcessId process : {1, 2}) closing.handle(process, state(process, 4, false, true));
  DrainState late = state(4, 3, false, true);
  closing.handle(4, late);
  closing.left(3);
  EXPECT_FALSE(closing.isDone());
  closing.tick();
  ASSERT_EQ(told_[4].targets.size(), 1u);
  EXPECT_EQ(told_[4].targets[0].count, 4u);
  for (const ProcessId process : {1, 2, 4}) closing.handle(process, state(process, 4, false, true));
  EXPECT_TRUE(closing.isDone());
}

TEST_F(ClosingTest, MessagesConcernTheirTwoRanksOnly) {
  form(false);
  Closing closing = close();
  DrainState sender = state(1, 0, false, true);
  sender.entered = {{world, 0, 2, 3}};
  closing.handle(1, sender);
  for (const ProcessId process : {2, 3}) closing.handle(process, state(process, 0, false, true));
  closing.tick();
  EXPECT_EQ(told_[1].targets.size(), 1u);
  EXPECT_EQ(told_[2].targets.size(), 0u);
  EXPECT_EQ(told_[3].targets.size(), 1u);
}

}  // namespace
}  // namespace falcon::control
