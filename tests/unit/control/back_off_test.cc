#include "control/back_off.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

diagnose::Suspicion suspicionOf(std::map<Rank, double> ranks, std::map<CommunicatorId, double> groups) {
  diagnose::Suspicion suspicion;
  for (const auto& [rank, growth] : ranks) suspicion.ranks.push_back({rank, growth});
  for (const auto& [id, growth] : groups) suspicion.groups.push_back({id, growth, {}});
  return suspicion;
}

TEST(BackOff, HoldsTwiceAsLongAfterEveryTestInVain) {
  BackOff backOff;
  const auto suspicion = suspicionOf({{3, 1.5}}, {{7, 1.3}});
  EXPECT_FALSE(backOff.holds(suspicion, 0s));
  Nanoseconds now = 1000s, pause = 5s;
  for (int i = 0; i < 5; ++i, pause *= 2) {
    backOff.foundNobody(suspicion, now);
    EXPECT_TRUE(backOff.holds(suspicion, now + pause - 1s)) << i;
    EXPECT_FALSE(backOff.holds(suspicion, now + pause)) << i;
    now += pause;
  }
}

TEST(BackOff, IsForTheSameSuspectsAtTheSameStrength) {
  BackOff backOff;
  backOff.foundNobody(suspicionOf({{3, 1.5}}, {{7, 1.3}}), 10s);
  EXPECT_TRUE(backOff.holds(suspicionOf({{3, 1.5}}, {{7, 1.3}}), 11s));
  EXPECT_TRUE(backOff.holds(suspicionOf({{3, 1.7}}, {}), 11s)) << "growths differ a little from profile to profile";
  EXPECT_TRUE(backOff.holds(suspicionOf({}, {{7, 1.1}}), 11s));
  EXPECT_FALSE(backOff.holds(suspicionOf({{3, 1.81}}, {{7, 1.3}}), 11s));
  EXPECT_FALSE(backOff.holds(suspicionOf({}, {{7, 1.6}}), 11s));
  EXPECT_FALSE(backOff.holds(suspicionOf({{4, 1.2}}, {{7, 1.3}}), 11s)) << "somebody else";
  EXPECT_FALSE(backOff.holds(suspicionOf({}, {{8, 1.2}}), 11s)) << "another group";
}

TEST(BackOff, BeginsAnewForAnotherSuspicionAndForgetsAllOnceSomebodyIsFound) {
  BackOff backOff;
  const auto one = suspicionOf({}, {{7, 1.3}}), other = suspicionOf({}, {{8, 2}});
  backOff.foundNobody(one, 0s);
  backOff.foundNobody(one, 5s);
  backOff.foundNobody(other, 6s);
  EXPECT_TRUE(backOff.holds(other, 10s));
  EXPECT_TRUE(backOff.holds(one, 14s)) << "twice in vain";
  EXPECT_FALSE(backOff.holds(one, 15s));
  backOff.foundSomebody();
  EXPECT_FALSE(backOff.holds(one, 6s));
}

}  // namespace
}  // namespace falcon::control
