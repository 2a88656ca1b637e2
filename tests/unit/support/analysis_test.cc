// What the page of a job is made of: phases and waiting.
#include <gtest/gtest.h>

#include "support/phases.h"
#include "support/waits.h"

namespace falcon::support {
namespace {

using instrument::JobTimeline;
using instrument::RankTimeline;
using instrument::TimelineCall;
using namespace std::chrono_literals;

TimelineCall call(CommunicatorId communicator, Operation operation, int peer, std::uint64_t sequence, Nanoseconds enter,
                  Nanoseconds leave) {
  return {communicator, operation, peer, sequence, 0, enter, leave};
}

constexpr auto allReduce = Operation::allReduce;

TEST(Phases, CountOverlappingCallsOnceForTheTimeOutside) {
  JobTimeline timeline{{{0,
                         {call(1, allReduce, -1, 0, -10s, 10s),  // begins before the stretch
                          call(2, Operation::send, 1, 0, 5s, 20s), call(1, allReduce, -1, 1, 60s, 200s)}}},
                       0s,
                       100s,
                       1};
  const auto phases = phasesOf(timeline);
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_DOUBLE_EQ(phases[0].outside, 0.4);
  EXPECT_DOUBLE_EQ(phases[0].inside.at({1, allReduce}), 0.5);
  EXPECT_DOUBLE_EQ(phases[0].inside.at({2, Operation::send}), 0.15);
}

TEST(CommonStretch, LiesInEveryLog) {
  const RankTimeline one{0, {call(1, allReduce, -1, 0, 1s, 9s), call(1, allReduce, -1, 1, 2s, 3s)}};
  const RankTimeline two{1, {call(1, allReduce, -1, 0, 4s, 12s)}};
  EXPECT_EQ(commonStretch({one, two}), (std::pair<Nanoseconds, Nanoseconds>(4s, 9s)));
  const RankTimeline later{2, {call(1, allReduce, -1, 0, 10s, 12s)}};
  for (const auto& ranks : {std::vector<RankTimeline>{}, {one, later}, {one, {3, {}}}}) {
    const auto [start, end] = commonStretch(ranks);
    EXPECT_EQ(start, end);
  }
}

TEST(Waits, OfACollectiveAreForItsLastRank) {
  const auto rank = [](Rank who, Nanoseconds enter) {
    return RankTimeline{who, {call(1, allReduce, -1, 7, enter, 50s)}};
  };
  JobTimeline timeline{{rank(4, 10s), rank(5, 40s), rank(6, 30s)}, 0s, 100s, 1};
  const std::map<std::pair<Rank, Rank>, double> expected{{{4, 5}, 0.3}, {{6, 5}, 0.1}};
  const auto waits = waitsOf(timeline, {{1, {4, 5, 6}}});
  ASSERT_EQ(waits.size(), expected.size());
  for (const auto& [who, share] : expected) EXPECT_DOUBLE_EQ(waits.at(who), share);
  EXPECT_TRUE(waitsOf(timeline, {{1, {4, 5, 6, 7}}}).empty()) << "the fourth member's entry is not known";
  EXPECT_TRUE(waitsOf(timeline, {}).empty());
}

TEST(Waits, OfMessagesGoBothWays) {
  // Rank 8 is 0 in the communicator, rank 9 is 1.
  const MembersOf members{{3, {8, 9}}};
  const auto waits = [&](Nanoseconds sendEnter, Nanoseconds sendLeave, Nanoseconds receiveEnter,
                         Nanoseconds receiveLeave) {
    return waitsOf({{{8, {call(3, Operation::send, 1, 0, sendEnter, sendLeave)}},
                     {9, {call(3, Operation::receive, 0, 0, receiveEnter, receiveLeave)}}},
                    0s,
                    100s,
                    1},
                   members);
  };
  EXPECT_EQ(waits(30s, 31s, 10s, 31s), (std::map<std::pair<Rank, Rank>, double>{{{9, 8}, 0.2}}));
  EXPECT_EQ(waits(10s, 40s, 30s, 41s), (std::map<std::pair<Rank, Rank>, double>{{{8, 9}, 0.2}}));
  EXPECT_EQ(waits(10s, 11s, 30s, 31s), (std::map<std::pair<Rank, Rank>, double>{{{8, 9}, 0.01}}))
      << "a send that was over waited for nobody after";
}

TEST(RangeShares, AreOfTheTimeThatTheLogCovers) {
  instrument::RangeLogView log;
  log.names = {{"forward", 0s, 0}, {"data", 0s, 0}};
  log.latest = {{0, 0, 0s, 10s}, {1, 0, 10s, 15s}, {0, 0, 15s, 45s}};
  log.ranges = 3;
  EXPECT_EQ(rangeShares(log, 5s, 25s), (std::map<std::string, double>{{"data", 0.25}, {"forward", 0.75}}));
  EXPECT_TRUE(rangeShares(log, 50s, 60s).empty());
  log.ranges = 100;  // what came before the first one's end was overwritten
  EXPECT_EQ(rangeShares(log, 5s, 20s), (std::map<std::string, double>{{"data", 0.5}, {"forward", 0.5}}));
  log.latest[1].name = 9;
  EXPECT_EQ(rangeShares(log, 5s, 20s), (std::map<std::string, double>{{"forward", 0.5}}));
}

}  // namespace
}  // namespace falcon::support
