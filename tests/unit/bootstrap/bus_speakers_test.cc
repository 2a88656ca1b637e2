#include "bootstrap/bus_speakers.h"

#include <gtest/gtest.h>

#include "bootstrap/bus_frame.h"

namespace falcon::bootstrap {
namespace {

TEST(BusSpeakers, AMemberSpeaksForItself) {
  BusSpeakers speakers;
  speakers.admit(1, false, {});
  speakers.admit(2, false, {});
  EXPECT_TRUE(speakers.mayCome(1, 1));
  EXPECT_FALSE(speakers.mayCome(1, 2));
  EXPECT_FALSE(speakers.mayCome(3, 2));
}

TEST(BusSpeakers, WhatFormerMembersSendComesOverTheOldWayUntilTheirMark) {
  BusSpeakers speakers;
  speakers.admit(5, false, {6, 7});
  EXPECT_TRUE(speakers.mayCome(6, 5));
  speakers.admit(6, true, {});
  EXPECT_TRUE(speakers.mayCome(6, 5));
  EXPECT_TRUE(speakers.mayCome(6, 6));
  speakers.settle(6);
  EXPECT_FALSE(speakers.mayCome(6, 5));
  EXPECT_TRUE(speakers.mayCome(6, 6));
  EXPECT_TRUE(speakers.mayCome(7, 5)) << "it is still on its way";
  EXPECT_EQ(speakers.all(), (std::set<ProcessId>{5, 6, 7}));
}

TEST(BusSpeakers, NobodyBringsWhoHasSettledHere) {
  BusSpeakers speakers;
  speakers.admit(1, false, {});
  speakers.admit(2, true, {});
  speakers.admit(5, false, {1, 2, 3});
  EXPECT_FALSE(speakers.mayCome(1, 5));
  EXPECT_TRUE(speakers.mayCome(2, 5)) << "the rest of what it sent may come that way";
  EXPECT_TRUE(speakers.mayCome(3, 5));
  speakers.admit(3, false, {});
  EXPECT_FALSE(speakers.mayCome(3, 5)) << "it comes from nowhere else";
}

TEST(BusSpeakers, WhoIsGoneIsForgotten) {
  BusSpeakers speakers;
  speakers.admit(5, false, {6});
  speakers.forget(6);
  EXPECT_FALSE(speakers.mayCome(6, 5));
  speakers.forget(5);
  EXPECT_TRUE(speakers.all().empty());
}

TEST(BusFrame, IdsAreReadAsTheyWereWritten) {
  const std::set<ProcessId> ids{0, 1, ~ProcessId{0}};
  EXPECT_EQ(unpackIds(packIds(ids)), ids);
  EXPECT_TRUE(unpackIds("seven b").empty());
}

}  // namespace
}  // namespace falcon::bootstrap
