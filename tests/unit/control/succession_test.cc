#include "control/succession.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace falcon::control {
namespace {

constexpr ProcessId lost = 1, successor = 2, third = 3, fourth = 4;
constexpr std::uint64_t agreement = 9;

/// The successor's own member says what it knows as the others do.
class SuccessionTest : public testing::Test, private Outbox {
 protected:
  static Recall waits(std::vector<ProcessId> members = {}, ProcessId by = lost) {
    return {{{agreement, members.empty() ? AgreementKind::microBatches : AgreementKind::ring, by, members}}, {}};
  }
  static Recall heard(bool commit) { return {{}, {{agreement, commit}}}; }
  void hears(ProcessId from, const Recall& recall) {
    succession_.handle(from, recall);
    succession_.tick();
  }
  using Told = std::set<std::pair<ProcessId, bool>>;  ///< who was told, and what
  static Told all(std::set<ProcessId> processes, bool commit) {
    Told told;
    for (const ProcessId process : processes) told.emplace(process, commit);
    return told;
  }

  ManualClock clock_;
  std::vector<ProcessId> present_ = {successor, third, fourth};
  DecisionBook own_;
  Told told_;
  Succession succession_{clock_, *this, [this] { return present_; }, &own_};

 private:
  void to(ProcessId process, const Message& message) override {
    const auto& decide = std::get<Decide>(message);
    EXPECT_EQ(decide.agreement, agreement);
    EXPECT_TRUE(told_.emplace(process, decide.commit).second) << "told twice";
  }
  void toAll(const Message&) override { FAIL() << "only who waits is told"; }
};

TEST_F(SuccessionTest, NothingChangesWhenNobodyHasHeardADecision) {
  hears(successor, waits());
  hears(third, waits());
  EXPECT_EQ(told_, Told()) << "the fourth may have heard one";
  hears(fourth, waits());
  EXPECT_EQ(told_, all({successor, third, fourth}, false));
}

// Whoever comes before and after the one that knows.
TEST_F(SuccessionTest, WhatOneHasHeardHoldsForAll) {
  hears(successor, waits());
  EXPECT_EQ(told_, Told());
  hears(fourth, heard(true));
  EXPECT_EQ(told_, all({successor}, true));
  hears(third, waits());
  EXPECT_EQ(told_, all({successor, third}, true));
}

TEST_F(SuccessionTest, AnAbortThatOneHasHeardHoldsToo) {
  hears(fourth, heard(false));
  hears(third, waits());
  EXPECT_EQ(told_, all({third}, false));
}

TEST_F(SuccessionTest, OfARingOnlyItsMembersAreWaitedFor) {
  hears(third, waits({lost, third, fourth}));
  EXPECT_EQ(told_, Told());
  hears(fourth, waits({lost, third, fourth}));
  EXPECT_EQ(told_, all({third, fourth}, false));
}

TEST_F(SuccessionTest, WhoHasLeftIsNotWaitedFor) {
  hears(successor, waits());
  hears(third, waits());
  present_ = {successor, third};
  succession_.left(fourth);
  succession_.tick();
  EXPECT_EQ(told_, all({successor, third}, false));
}

TEST_F(SuccessionTest, WhoComesBackIsAskedAnew) {
  hears(fourth, {});
  succession_.left(fourth);  // and is there again, with what it heard meanwhile
  hears(successor, waits());
  hears(third, waits());
  EXPECT_EQ(told_, Told());
  hears(fourth, heard(true));
  EXPECT_EQ(told_, all({successor, third}, true));
}

TEST_F(SuccessionTest, WhoHandsOverInOrderHasTheLastWord) {
  present_ = {lost, successor, third, fourth};
  for (const ProcessId process : {successor, third, fourth}) hears(process, waits());
  EXPECT_EQ(told_, Told());
  hears(lost, heard(true));
  EXPECT_EQ(told_, all({successor, third, fourth}, true));
}

TEST_F(SuccessionTest, WhatThisProcessHasDecidedItselfHolds) {
  for (const ProcessId process : {successor, third, fourth}) hears(process, {});
  own_.note({agreement, true});
  hears(third, waits({}, successor));  // cut off when it was said
  EXPECT_EQ(told_, all({third}, true));
}

TEST_F(SuccessionTest, ASilentProcessIsNotWaitedForForEver) {
  hears(successor, waits());
  hears(third, waits());
  clock_.advance(Succession::patience - 1ms);
  succession_.tick();
  EXPECT_EQ(told_, Told());
  clock_.advance(1ms);
  succession_.tick();
  EXPECT_EQ(told_, all({successor, third}, false));
}

TEST(DecisionBook, KeepsTheNewestAndTheFirstWordOnEach) {
  DecisionBook book;
  for (std::uint64_t each = 0; each <= DecisionBook::most; ++each) book.note({each, each % 2 == 0});
  book.note({DecisionBook::most, false});
  EXPECT_EQ(book.find(DecisionBook::most), true);
  EXPECT_EQ(book.find(1), false);
  EXPECT_EQ(book.find(0), std::nullopt);
  EXPECT_EQ(book.decisions().size(), DecisionBook::most);
}

}  // namespace
}  // namespace falcon::control
