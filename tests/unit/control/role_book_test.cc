#include "control/role_book.h"

#include <gtest/gtest.h>

#include <thread>

namespace falcon::control {
namespace {

using namespace std::chrono_literals;

const std::vector<int> swapped{1, 0};
const std::vector<Link> avoided{{0, 1}, {1, 0}};
const std::vector<std::int32_t> encoded = RoleBook::encode(swapped, avoided);

TEST(RoleBook, GivesADecidedChangeOnceAtItsIteration) {
  RoleBook book;
  book.enable();
  EXPECT_EQ(book.take(0), std::nullopt);
  EXPECT_EQ(book.nextIteration(), 1u);
  ASSERT_TRUE(book.propose(7, 3, encoded));
  EXPECT_EQ(book.take(1), std::nullopt);
  book.decide(7, true);
  EXPECT_EQ(book.take(2), std::nullopt);
  const auto change = book.take(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->agreement, 7u);
  EXPECT_EQ(change->roles, swapped);
  EXPECT_EQ(change->avoid, avoided);
  EXPECT_EQ(book.take(4), std::nullopt);
}

TEST(RoleBook, RefusesWhatCannotBeDone) {
  RoleBook book;
  EXPECT_FALSE(book.propose(1, 5, encoded)) << "nobody has said that roles can be exchanged";
  book.enable();
  book.take(5);
  EXPECT_FALSE(book.propose(2, 5, encoded)) << "that iteration has begun";
  ASSERT_TRUE(book.propose(3, 7, encoded));
  EXPECT_FALSE(book.propose(4, 8, encoded)) << "one is undecided";
  book.decide(3, true);
  EXPECT_FALSE(book.propose(5, 8, encoded)) << "one is to be done";
  EXPECT_TRUE(book.take(7));
  for (const std::vector<std::int32_t>& numbers : {std::vector<std::int32_t>{}, {-1}, {3, 1, 0}, {2, 1, 0, 5}})
    EXPECT_FALSE(book.propose(6, 9, numbers)) << "no roles";
  EXPECT_TRUE(book.propose(6, 9, encoded));
}

TEST(RoleBook, ForgetsWhatIsNotDecidedFor) {
  RoleBook book;
  book.enable();
  ASSERT_TRUE(book.propose(1, 2, encoded));
  book.decide(9, true);  // another one's
  book.decide(1, false);
  EXPECT_EQ(book.take(2), std::nullopt);
}

TEST(RoleBook, HoldsWhoBeginsTheIterationOfAnUndecidedProposal) {
  for (const bool commit : {false, true}) {
    RoleBook book;
    book.enable();
    ASSERT_TRUE(book.propose(1, 2, encoded));
    std::thread decides([&] {
      std::this_thread::sleep_for(20ms);
      book.decide(1, commit);
    });
    EXPECT_EQ(book.take(2).has_value(), commit);
    decides.join();
  }
}

}  // namespace
}  // namespace falcon::control
