#include "control/told_call.h"

#include <gtest/gtest.h>

#include <vector>

namespace falcon::control {
namespace {

constexpr CommunicatorId one = 11, other = 22;

HandedCall sum(CommunicatorId communicator, std::size_t bytes, int size = 4) {
  return {communicator, 1, size, Operation::allReduce, bytes, -1, false};
}

struct Handed {
  std::vector<HandedCall> calls;
  bool hasOthers = false;

  /// As who asks for it does: the call is told.
  int find(const ToldCall& told, int from = 0) {
    const int place = placeOf(told, static_cast<int>(calls.size()), from, hasOthers,
                              [this](int at) { return calls[static_cast<std::size_t>(at)]; });
    if (place >= 0) calls[static_cast<std::size_t>(place)].told = true;
    return place;
  }
};

ToldCall toldSum(CommunicatorId communicator, std::size_t bytes, int size = 4) {
  return {communicator, 1, size, Operation::allReduce, bytes, -1};
}

TEST(ToldCall, IsFoundByWhatItIsInWhateverOrder) {
  Handed handed{{sum(one, 100), sum(one, 200), sum(one, 100)}};
  EXPECT_EQ(handed.find(toldSum(0, 200)), 1);
  EXPECT_EQ(handed.find(toldSum(one, 100)), 0);
  EXPECT_EQ(handed.find(toldSum(one, 100)), 2);
  EXPECT_EQ(handed.find(toldSum(one, 100)), -1) << "each is told once";
  EXPECT_EQ(handed.find(toldSum(one, 300)), -1);
}

TEST(ToldCall, BeginsWhereItIsTold) {
  Handed handed{{sum(one, 100), sum(one, 100), sum(one, 100)}};
  EXPECT_EQ(handed.find(toldSum(one, 100), 1), 1);
  EXPECT_EQ(handed.find(toldSum(one, 100), 2), 2);
  EXPECT_EQ(handed.find(toldSum(one, 100), 2), 0);
}

TEST(ToldCall, OfANameThatIsNotKnownMayBeOneCommunicatorsOnly) {
  Handed handed{{sum(one, 100), sum(other, 100), sum(other, 200), sum(one, 300, 2)}};
  EXPECT_EQ(handed.find(toldSum(0, 100)), -1) << "either's";
  EXPECT_EQ(handed.find(toldSum(0, 200)), 2);
  EXPECT_EQ(handed.find(toldSum(0, 300, 2)), 3) << "of that size there is one";
  EXPECT_EQ(handed.find(toldSum(other, 100)), 1);
  EXPECT_EQ(handed.find(toldSum(0, 100)), 0) << "the other's was told";
}

TEST(ToldCall, OfACommunicatorThatIsNotWatchedIsNotTakenForAnothers) {
  Handed handed{{sum(0, 100), sum(one, 100)}};
  EXPECT_EQ(handed.find(toldSum(0, 100)), -1);
  EXPECT_EQ(handed.find(toldSum(other, 100)), -1);
  EXPECT_EQ(handed.find(toldSum(one, 100)), 1);
  Handed more{{sum(one, 100)}, true};
  EXPECT_EQ(more.find(toldSum(0, 100)), -1);
  EXPECT_EQ(more.find(toldSum(one, 100)), 0);
}

TEST(ToldCall, MessagesGoByTheirPeers) {
  Handed handed{{{one, 1, 4, Operation::send, 100, 2, false},
                 {one, 1, 4, Operation::receive, 100, 2, false},
                 {one, 1, 4, Operation::send, 100, 3, false}}};
  EXPECT_EQ(handed.find({one, 1, 4, Operation::send, 100, 3}), 2);
  EXPECT_EQ(handed.find({one, 1, 4, Operation::receive, 100, 2}), 1);
  EXPECT_EQ(handed.find({one, 1, 4, Operation::receive, 100, 3}), -1);
}

TEST(ToldCall, WhatConsistsOfMessagesIsToldForEach) {
  Handed handed{{{one, 1, 4, Operation::allToAll, 100, -1, false}, {one, 1, 4, Operation::send, 100, 3, false}}};
  EXPECT_EQ(handed.find({one, 1, 4, Operation::send, 100, 3}), 1) << "it was meant itself";
  for (int peer = 0; peer < 4; ++peer) EXPECT_EQ(handed.find({one, 1, 4, Operation::send, 100, peer}), 0);
  EXPECT_EQ(handed.find({one, 1, 4, Operation::allReduce, 100, -1}), -1);
}

}  // namespace
}  // namespace falcon::control
