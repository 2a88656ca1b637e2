#include "instrument/blame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "instrument/critical_path.h"
#include "simulated_training.h"

namespace falcon::instrument {
namespace {

constexpr int iterations = 3;

Blame judge(const SimulatedTraining& healthy, const SimulatedTraining& now, unsigned seed = 1) {
  const auto members = healthy.communicators();
  return blame(healthy.run(iterations, seed), now.run(iterations, seed + 1000), members);
}

std::string textOf(const Blame& blame) {
  std::string text = std::to_string(blame.seconds / blame.healthySeconds) + "x:";
  for (const DelaySource& each : blame.sources)
    text += " kind " + std::to_string(static_cast<int>(each.kind)) + " rank " + std::to_string(each.rank) + " link " +
            std::to_string(each.link.from) + ">" + std::to_string(each.link.to) + " communicator " +
            std::to_string(each.communicator) + " share " + std::to_string(each.share) + ";";
  return text;
}

std::vector<Rank> membersOf(const SimulatedTraining& job, CommunicatorId communicator) {
  for (const auto& each : job.communicators())
    if (each.communicator == communicator) return each.members;
  return {};
}

bool accuses(const SimulatedTraining& job, const DelaySource& cause, Link link) {
  if (cause.kind == DelaySource::Kind::link) return cause.link == link;
  if (cause.kind != DelaySource::Kind::group) return false;
  const auto members = membersOf(job, cause.communicator);
  return std::count(members.begin(), members.end(), link.from) && std::count(members.begin(), members.end(), link.to);
}

// Sanitizers see nothing in 1024 ranks that they do not see in 128, and take twenty times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr topology::Layout largest{4, 4, 8};
#else
constexpr topology::Layout largest{16, 8, 8};
#endif

class BlameInLayouts : public testing::TestWithParam<topology::Layout> {
 protected:
  SimulatedTraining healthy() const {
    const bool large = GetParam().size() > 256;  // so that the test stays short
    return {.layout = GetParam(), .microBatches = (large ? 1 : 2) * GetParam().pipelineSize, .layers = large ? 1 : 2};
  }
  Rank someRank(int part) const { return (GetParam().size() - 1) * part / 3; }
};

TEST_P(BlameInLayouts, AHealthyJobHasNoCulprit) {
  for (unsigned seed = 1; seed < 4; ++seed) {
    const Blame result = judge(healthy(), healthy(), seed);
    EXPECT_TRUE(result.sources.empty()) << textOf(result);
  }
}

TEST_P(BlameInLayouts, OneSlowRankIsTheOnlyCause) {
  for (int part = 0; part < 4; ++part) {
    SimulatedTraining now = healthy();
    now.slowRanks[someRank(part)] = GetParam().size() > 256 ? 2.5 : 1.6;  // few micro-batches: a pipeline has slack
    const Blame result = judge(healthy(), now);
    ASSERT_EQ(result.sources.size(), 1U) << textOf(result) << " " << result.unexplainedShare;
    EXPECT_EQ(result.sources[0].kind, DelaySource::Kind::rank) << textOf(result);
    EXPECT_EQ(result.sources[0].rank, someRank(part));
    EXPECT_GT(result.sources[0].share, 0.7) << textOf(result);
    EXPECT_FALSE(result.sources[0].oneStretch);
  }
}

// One odd call, and the sequence of calls repeats no longer: the stretches are still those of the healthy iterations.
TEST_P(BlameInLayouts, ASlowRankIsFoundWhereItsCallsDoNotRepeatExactly) {
  SimulatedTraining slow = healthy();
  const Rank culprit = someRank(2);
  slow.slowRanks[culprit] = 2.5;
  const auto members = healthy().communicators();
  JobTimeline now = slow.run(iterations, 1001);
  for (RankTimeline& rank : now.ranks) {
    if (rank.rank != culprit) continue;
    const auto middle = rank.calls.begin() + std::ssize(rank.calls) / 2;
    TimelineCall odd = *middle;
    odd.communicator = 12345;  // of nobody else
    odd.leave = odd.enter;
    rank.calls.insert(middle, odd);
  }
  const Blame result = blame(healthy().run(iterations, 1), now, members);
  ASSERT_FALSE(result.sources.empty()) << textOf(result);
  EXPECT_EQ(result.sources[0].kind, DelaySource::Kind::rank) << textOf(result);
  EXPECT_EQ(result.sources[0].rank, culprit) << textOf(result);
  EXPECT_GT(result.sources[0].share, 0.5) << textOf(result);
}

TEST_P(BlameInLayouts, SlowLoadingIsSaidToBeOneStretchOfTheRank) {
  SimulatedTraining now = healthy();
  now.slowLoading[someRank(2)] = 40;
  const Blame result = judge(healthy(), now);
  ASSERT_EQ(result.sources.size(), 1U) << textOf(result) << " " << result.unexplainedShare;
  EXPECT_EQ(result.sources[0].rank, someRank(2)) << textOf(result);
  // With fewer than three calls an iteration there is nothing to tell apart.
  const bool knowable = GetParam().pipelineSize > 1 || GetParam().tensorSize > 1;
  EXPECT_EQ(result.sources[0].oneStretch, knowable) << textOf(result);
}

TEST_P(BlameInLayouts, EverybodySlowerIsNobodysFault) {
  SimulatedTraining now = healthy();
  for (Rank rank = 0; rank < now.layout.size(); ++rank) now.slowRanks[rank] = 1.5;
  const Blame result = judge(healthy(), now);
  ASSERT_FALSE(result.sources.empty());
  EXPECT_EQ(result.sources[0].kind, DelaySource::Kind::everybody) << textOf(result);
  EXPECT_EQ(result.sources.size(), 1U) << textOf(result);
}

TEST_P(BlameInLayouts, ASlowLinkOfEachKindOfGroupIsFound) {
  const auto& layout = GetParam();
  std::vector<Link> links;
  const auto group = [&](const std::vector<Rank>& members) {
    if (members.size() > 1) links.push_back({members[members.size() / 2 - 1], members[members.size() / 2]});
  };
  const Rank rank = someRank(1);
  group(layout.tensorGroup(rank)), group(layout.pipelineGroup(rank)), group(layout.dataGroup(rank));
  for (const Link link : links) {
    SimulatedTraining now = healthy();
    now.slowLinks[link] = 60;
    const Blame result = judge(healthy(), now);
    ASSERT_FALSE(result.sources.empty()) << link.from << " > " << link.to << " " << textOf(result);
    EXPECT_TRUE(accuses(now, result.sources[0], link)) << link.from << " > " << link.to << " " << textOf(result);
    EXPECT_EQ(result.sources.size(), 1U) << link.from << " > " << link.to << " " << textOf(result);
  }
}

// A pause takes more than the slowness does over all these iterations.
TEST(Blame, OfWhatLastsIsNotThatOfWhoPausedOnce) {
  const SimulatedTraining healthy{.layout = {4, 1, 1}};
  SimulatedTraining now = healthy;
  now.slowRanks[2] = 1.08;
  now.pauses[{0, 17}] = 0.2;
  const auto members = healthy.communicators();
  const JobTimeline before = healthy.run(16, 1), after = now.run(40, 2);
  const auto accused = [&](bool lasting) {
    std::vector<Rank> ranks;
    for (const DelaySource& each :
         blame(before, after, members, {.leastShare = 0.025, .leastGrowth = 1.025, .lasting = lasting}).sources)
      ranks.push_back(each.rank);
    return ranks;
  };
  EXPECT_EQ(accused(true), std::vector<Rank>{2});
  EXPECT_EQ(accused(false).at(0), 0) << "by what it took";
}

/// More than one replica.
class BlameInReplicas : public BlameInLayouts {};

TEST_P(BlameInReplicas, TwoCausesAtOnceAreToldApart) {
  const auto data = GetParam().dataGroup(someRank(0));
  SimulatedTraining now = healthy();
  const Rank slow = someRank(3);
  now.slowRanks[slow] = 1.5;
  now.slowLinks[{data[0], data[1]}] = 5;
  const Blame result = judge(healthy(), now);
  const bool rank = std::any_of(result.sources.begin(), result.sources.end(), [&](const DelaySource& cause) {
    return cause.kind == DelaySource::Kind::rank && cause.rank == slow;
  });
  const bool link = std::any_of(result.sources.begin(), result.sources.end(), [&](const DelaySource& cause) {
    return accuses(now, cause, {data[0], data[1]});
  });
  EXPECT_TRUE(rank && link) << textOf(result);
  EXPECT_EQ(result.sources.size(), 2U) << textOf(result);
}

TEST_P(BlameInLayouts, UnequalStagesAndSequencesAreNotCulpritsAndDoNotHideOne) {
  SimulatedTraining job = healthy();
  job.stages[0] = 1.3;
  job.stages[GetParam().pipelineSize - 1] = 0.8;
  job.sequenceLengths = {0.9, 1.0, 1.1};
  const Blame quiet = judge(job, job);
  EXPECT_TRUE(quiet.sources.empty()) << textOf(quiet);
  SimulatedTraining now = job;
  now.slowRanks[someRank(2)] = 2.5;
  Blame result = judge(job, now);
  // What the lengths that were drawn make of all ranks alike may be said too.
  std::erase_if(result.sources, [](const DelaySource& cause) { return cause.kind == DelaySource::Kind::everybody; });
  ASSERT_EQ(result.sources.size(), 1U) << textOf(result);
  EXPECT_EQ(result.sources[0].rank, someRank(2)) << textOf(result);
}

/// More than one stage.
class BlameInStages : public BlameInLayouts {};

TEST_P(BlameInStages, ASlowStageNamesRanksOfThatStageOnly) {
  const auto& layout = GetParam();
  SimulatedTraining now = healthy();
  now.stages[1] = 1.5;
  const Blame result = judge(healthy(), now);
  ASSERT_FALSE(result.sources.empty());
  for (const DelaySource& cause : result.sources) {
    EXPECT_EQ(cause.kind, DelaySource::Kind::rank) << textOf(result);
    EXPECT_EQ(layout.coordinatesOf(cause.rank).pipeline, 1) << textOf(result);
  }
}

TEST_P(BlameInLayouts, ThePathCoversTheWholeIteration) {
  SimulatedTraining job = healthy();
  job.sendsWait = true;
  const JobTimeline timeline = job.run(2, 7);
  const auto members = job.communicators();
  const auto path = WaitGraph(timeline, members).criticalPath();
  Nanoseconds time = timeline.end;
  for (const PathPiece& piece : path) {
    EXPECT_EQ(piece.end, time);
    EXPECT_LT(piece.start, piece.end);
    time = piece.start;
  }
  EXPECT_EQ(time, timeline.start);
}

std::vector<topology::Layout> layoutsWhere(bool (*holds)(const topology::Layout&)) {
  std::vector<topology::Layout> layouts{{2, 1, 1}, {8, 1, 1}, {4, 1, 2}, {1, 4, 1},
                                        {2, 4, 1}, {2, 2, 2}, {4, 4, 4}, largest};
  std::erase_if(layouts, [&](const topology::Layout& layout) { return !holds(layout); });
  return layouts;
}
std::string layoutName(const testing::TestParamInfo<topology::Layout>& layouts) {
  const topology::Layout& layout = layouts.param;
  return "D" + std::to_string(layout.dataSize) + "P" + std::to_string(layout.pipelineSize) + "T" +
         std::to_string(layout.tensorSize);
}
using topology::Layout;
INSTANTIATE_TEST_SUITE_P(Layouts, BlameInLayouts, testing::ValuesIn(layoutsWhere([](const Layout&) { return true; })),
                         layoutName);
INSTANTIATE_TEST_SUITE_P(Layouts, BlameInReplicas,
                         testing::ValuesIn(layoutsWhere([](const Layout& layout) { return layout.dataSize >= 2; })),
                         layoutName);
INSTANTIATE_TEST_SUITE_P(Layouts, BlameInStages,
                         testing::ValuesIn(layoutsWhere([](const Layout& layout) { return layout.pipelineSize >= 2; })),
                         layoutName);

}  // namespace
}  // namespace falcon::instrument
