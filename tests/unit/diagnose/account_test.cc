// The account on constructed observations: who explains what was seen, and who does not.
#include "diagnose/account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "diagnose/reach.h"

namespace falcon::diagnose {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Candidate rank(Rank number) {
  return {.kind = CandidateKind::rank, .rank = number};
}
Candidate link(Rank from, Rank to) {
  return {.kind = CandidateKind::link, .link = {from, to}};
}
Candidate interface(CandidateKind kind, Rank number) {
  return {.kind = kind, .ranks = {number}};
}

/// Four ranks, all of which are linked; each observation is healthy until it is said to be slower.
class Observed {
 public:
  Observed() {
    for (Rank one = 0; one < ranks; ++one) {
      candidates.push_back(rank(one));
      candidates.push_back(interface(CandidateKind::interfaceOut, one));
      candidates.push_back(interface(CandidateKind::interfaceIn, one));
      all.push_back({.quantity = Quantity::ownTime, .rank = one, .sigma = 0.05, .aloneFrom = std::log(1.5)});
      all.push_back({.quantity = Quantity::computeTest, .rank = one, .sigma = 0.1, .aloneFrom = std::log(1.5)});
      for (Rank other = 0; other < ranks; ++other) {
        if (one == other) continue;
        candidates.push_back(link(one, other));
        all.push_back({.quantity = Quantity::linkTest,
                       .link = {one, other},
                       .sigma = 0.02,
                       .overNetwork = true,
                       .aloneFrom = std::log(2.5)});
      }
    }
  }

  static constexpr Rank ranks = 4;
  std::vector<Candidate> candidates;
  std::vector<Observation> all;

  Observed& rankIs(Rank number, double own, double test) {
    find(Quantity::ownTime, number, {}).value = std::log(own);
    find(Quantity::computeTest, number, {}).value = std::log(test);
    return *this;
  }
  Observed& linkIs(Rank from, Rank to, double times) {
    find(Quantity::linkTest, -1, {from, to}).value = std::log(times);
    return *this;
  }
  /// Profiling saw the job wait for its bytes (infinite), or not (0).
  Observed& waitsFor(Rank from, Rank to, double value = infinite) {
    all.push_back(
        {.quantity = Quantity::transferTime, .link = {from, to}, .value = value, .sigma = 0.1, .overNetwork = true});
    return *this;
  }
  Observation& find(Quantity quantity, Rank number, Link of) {
    return *std::find_if(all.begin(), all.end(), [&](const Observation& each) {
      return each.quantity == quantity && each.rank == number && each.link == of;
    });
  }

  Account account() const { return accountOf(all, candidates); }
  /// Who is named, by name.
  std::set<std::string> named() const {
    std::set<std::string> names;
    for (const Explanation& explanation : account().explanations)
      if (explanation.isNamed) names.insert(nameOf(explanation.candidate));
    return names;
  }
};

using Names = std::set<std::string>;

TEST(Reach, IsOneTable) {
  const Observation own{.quantity = Quantity::ownTime, .rank = 1}, test{.quantity = Quantity::computeTest, .rank = 1};
  const Observation measured{.quantity = Quantity::linkTest, .link = {1, 2}, .overNetwork = true};
  Observation moved = measured, near = measured;
  moved.quantity = Quantity::transferTime;
  near.overNetwork = false;
  EXPECT_TRUE(reachOf(rank(1), own).isMust());
  EXPECT_FALSE(reachOf(rank(1), test).isMust());
  EXPECT_FALSE(reachOf(rank(1), test).isNone());
  EXPECT_TRUE(reachOf(rank(2), own).isNone());
  for (const Rank end : {1, 2}) EXPECT_FALSE(reachOf(rank(end), measured).isNone());
  EXPECT_TRUE(reachOf(rank(3), measured).isNone());
  EXPECT_TRUE(reachOf(link(1, 2), measured).isMust());
  EXPECT_TRUE(reachOf(link(1, 2), moved).isMust());
  EXPECT_TRUE(reachOf(link(2, 1), measured).isNone());
  EXPECT_TRUE(reachOf(link(1, 2), own).isNone());
  EXPECT_TRUE(reachOf(interface(CandidateKind::interfaceOut, 1), measured).isMust());
  EXPECT_TRUE(reachOf(interface(CandidateKind::interfaceIn, 1), measured).isNone());
  EXPECT_TRUE(reachOf(interface(CandidateKind::interfaceIn, 2), measured).isMust());
  EXPECT_TRUE(reachOf(interface(CandidateKind::interfaceOut, 1), near).isNone()) << "it leaves no host";
}

TEST(Account, OfNothingSlowHasNoCause) {
  EXPECT_TRUE(Observed().account().explanations.empty());
  EXPECT_TRUE(accountOf({}, {}).explanations.empty());
}

TEST(Account, NamesARankThatTwoSourcesAgreeOnFromOnePointTwoTimes) {
  EXPECT_EQ(Observed().rankIs(2, 1.35, 1.6).named(), Names{"rank 2"});
  EXPECT_EQ(Observed().rankIs(2, 1.15, 1.15).named(), Names());
}

TEST(Account, NamesARankByOneSourceOnlyWhereItIsClearlySlow) {
  EXPECT_EQ(Observed().rankIs(1, 1.6, 1).named(), Names{"rank 1"}) << "its processor passes";
  EXPECT_EQ(Observed().rankIs(1, 1.4, 1).named(), Names());
  EXPECT_EQ(Observed().rankIs(1, 1, 3).named(), Names()) << "a core lost for the test: the job does not feel it";
}

TEST(Account, TellsTwoLinksAndALinkAndARankApart) {
  EXPECT_EQ(Observed().linkIs(0, 1, 3).linkIs(2, 3, 4).named(), (Names{"link 0 -> 1", "link 2 -> 3"}));
  EXPECT_EQ(Observed().rankIs(3, 2, 2).linkIs(0, 1, 3).named(), (Names{"rank 3", "link 0 -> 1"}));
}

TEST(Account, NeedsASecondSourceForALinkThatIsALittleSlower) {
  EXPECT_EQ(Observed().linkIs(0, 1, 1.3).named(), Names());
  EXPECT_EQ(Observed().linkIs(0, 1, 1.3).waitsFor(0, 1).named(), Names{"link 0 -> 1"});
  EXPECT_EQ(Observed().linkIs(0, 1, 1.12).waitsFor(0, 1).named(), Names());
  EXPECT_EQ(Observed().linkIs(0, 1, 20).waitsFor(0, 1, 0).named(), Names()) << "nobody waits for it";
}

TEST(Account, ASlowRankExplainsItsLinksUpToTwiceItsOwnSlowdown) {
  Observed observed;
  observed.rankIs(2, 3, 3);
  for (Rank other = 0; other < Observed::ranks; ++other)
    if (other != 2) observed.linkIs(2, other, 3.5).linkIs(other, 2, 5);
  EXPECT_EQ(observed.named(), Names{"rank 2"});
  EXPECT_EQ(observed.linkIs(2, 0, 40).named(), (Names{"rank 2", "link 2 -> 0"}));
}

TEST(Account, CallsAllLinksThatLeaveARankItsInterfaceAndOneOfThemALink) {
  Observed all;
  for (const Rank other : {0, 1, 3}) all.linkIs(2, other, 3);
  EXPECT_EQ(all.named(), Names{nameOf(interface(CandidateKind::interfaceOut, 2))});
  EXPECT_EQ(Observed().linkIs(2, 1, 3).named(), Names{"link 2 -> 1"});
  for (const Rank other : {0, 1, 3}) all.linkIs(other, 2, 3);
  EXPECT_EQ(all.named(), (Names{nameOf(interface(CandidateKind::interfaceOut, 2)),
                                nameOf(interface(CandidateKind::interfaceIn, 2))}));
}

// Each alone denies half of what the other has to show in; leave-one-out acquits both.
TEST(Account, FindsTwoInterfacesThatCross) {
  Observed observed;
  for (Rank other = 0; other < Observed::ranks; ++other) {
    if (other != 0) observed.linkIs(0, other, 3);
    if (other != 1) observed.linkIs(other, 1, 3);
  }
  EXPECT_EQ(observed.named(), (Names{nameOf(interface(CandidateKind::interfaceOut, 0)),
                                     nameOf(interface(CandidateKind::interfaceIn, 1))}));
}

TEST(Account, NamesNobodyWhereMoreThanFourWouldBeSlow) {
  Observed observed;
  observed.linkIs(0, 1, 9).linkIs(1, 2, 5).linkIs(2, 0, 6).linkIs(1, 0, 7);
  EXPECT_EQ(observed.named().size(), 4u);
  observed.rankIs(3, 3, 3);
  EXPECT_TRUE(observed.account().tooMany);
  EXPECT_EQ(observed.named(), Names());
}

TEST(Account, WhatWasSeenTooSeldomOrMayNotBeAccusedIsExplainedAndNotNamed) {
  Observed observed;
  observed.linkIs(0, 1, 9);
  observed.find(Quantity::linkTest, -1, {0, 1}).settled = false;
  ASSERT_EQ(observed.account().explanations.size(), 1u);
  EXPECT_FALSE(observed.account().explanations[0].isNamed);
  EXPECT_GE(observed.account().explanations[0].margin, 1);
  Observed lent;
  lent.linkIs(0, 1, 9);
  for (Candidate& candidate : lent.candidates) candidate.accusable = candidate.link != Link{0, 1};
  EXPECT_EQ(lent.account().explanations.size(), 1u);
  EXPECT_EQ(lent.named(), Names());
}

TEST(Account, TellsHowSlowWithItsDeviation) {
  const Account account = Observed().linkIs(0, 1, 2).waitsFor(0, 1).account();
  ASSERT_EQ(account.explanations.size(), 1u);
  EXPECT_NEAR(std::exp(account.explanations[0].theta), 2, 1e-9);
  EXPECT_NEAR(account.explanations[0].deviation, 0.02, 1e-9);
  EXPECT_EQ(account.explanations[0].sources, 2);
}

}  // namespace
}  // namespace falcon::diagnose
