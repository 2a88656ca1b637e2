#include "control/restart_book.h"

#include <gtest/gtest.h>

#include <future>

#include "unit/control/a_member.h"

namespace falcon::control {
namespace {

TEST(RestartBook, IsWantedFromItsIterationOn) {
  RestartBook book;
  EXPECT_FALSE(book.wanted(0));
  ASSERT_TRUE(book.propose(5, 3, {2}));
  EXPECT_FALSE(book.wanted(1));
  EXPECT_FALSE(book.decided());
  book.decide(5, true);
  EXPECT_FALSE(book.wanted(2)) << "some rank may be at its end already";
  EXPECT_TRUE(book.wanted(3));
  EXPECT_TRUE(book.wanted(4));
  EXPECT_EQ(book.decided(), std::vector<Rank>{2});
}

TEST(RestartBook, RefusesWhereNobodyAsksAndWhatIsTooLate) {
  RestartBook book;
  EXPECT_FALSE(book.propose(1, 5, {})) << "nothing would come of it";
  EXPECT_FALSE(book.wanted(7));
  EXPECT_EQ(book.nextIteration(), 8u);
  EXPECT_FALSE(book.propose(1, 7, {}));
  EXPECT_TRUE(book.propose(2, 8, {}));
  EXPECT_FALSE(book.propose(3, 9, {})) << "another one is undecided";
  book.decide(2, false);
  EXPECT_TRUE(book.propose(4, 9, {}));
  book.decide(4, true);
  EXPECT_FALSE(book.propose(5, 10, {})) << "one is enough";
}

TEST(RestartBook, ARankWaitsForTheWordAtItsIteration) {
  for (const bool commit : {true, false}) {
    RestartBook book;
    book.wanted(0);
    ASSERT_TRUE(book.propose(1, 1, {0}));
    auto answer = std::async(std::launch::async, [&] { return book.wanted(1); });
    EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    book.decide(1, commit);
    EXPECT_EQ(answer.get(), commit);
  }
}

TEST(RestartBook, IsLookedUpByWhoDoesNotAsk) {
  RestartBook book;
  EXPECT_FALSE(book.isDecidedFor(3));
  EXPECT_FALSE(book.propose(1, 3, {})) << "looking is not asking";
  book.wanted(0);
  ASSERT_TRUE(book.propose(2, 3, {}));
  EXPECT_FALSE(book.isDecidedFor(3)) << "undecided, and nobody waits";
  book.decide(2, true);
  EXPECT_FALSE(book.isDecidedFor(2));
  EXPECT_TRUE(book.isDecidedFor(3));
  EXPECT_EQ(book.nextIteration(), 1u);
}

using MemberRestart = falcon::test::AMember;

TEST_F(MemberRestart, IsAgreedToWhereTheFrameworkAsks) {
  constexpr ProcessId controller = 7;
  member.handle(controller, Propose{1, AgreementKind::restart, 0, 3, {2}, {}});
  EXPECT_FALSE(bus.take<Vote>().at(0).yes);
  EXPECT_FALSE(restarts.wanted(4));
  member.handle(controller, AskCounter{2, AgreementKind::restart, 0});
  EXPECT_EQ(bus.take<Counter>().at(0).next, 5u);
  member.handle(controller, Propose{2, AgreementKind::restart, 0, 6, {2}, {}});
  EXPECT_TRUE(bus.take<Vote>().at(0).yes);
  member.handle(controller, Decide{2, true});
  EXPECT_FALSE(restarts.wanted(5));
  EXPECT_TRUE(restarts.wanted(6));
  EXPECT_EQ(restarts.decided(), std::vector<Rank>{2});
}

TEST_F(MemberRestart, WhatTheFrameworkDoesForItIsToldToALaterController) {
  member.restartKnown({true, 300, 9, 40, 0.25, 3});
  EXPECT_EQ(bus.take<RestartKnown>().size(), 1u);
  member.newController();
  const auto told = bus.take<RestartKnown>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].asked);
  EXPECT_EQ(told[0].expectedSeconds, 300);
  EXPECT_EQ(told[0].measuredSeconds, 9);
  EXPECT_EQ(told[0].checkpoint, 40);
  EXPECT_EQ(told[0].waitedSeconds, 0.25);
  EXPECT_EQ(told[0].writtenSeconds, 3);
}

}  // namespace
}  // namespace falcon::control
