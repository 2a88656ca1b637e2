// Verdicts on constructed measurements: the guilty links are named, and the innocent never.
#include <set>

#include "diagnose/verdict.h"
#include "falcon_net_state.h"
#include "unit/diagnose/measured_job.h"

namespace falcon::diagnose {
namespace {

class SlowLink : public testing::TestWithParam<double> {};

TEST_P(SlowLink, OneWayIsNamedAmongUnshapedLinks) {
  expectNamed({linkCulprit({4, 2})},
              GetParam() < 6    ? 0.6
              : GetParam() < 20 ? 0.95
                                : 0.99,
              1000, [](Job& job) { job.linkSlowdown = [](Link link) {
                                     return link == Link{4, 2} ? GetParam() : 1;
                                   }; });
}

TEST_P(SlowLink, BothWaysAreOneCulprit) {
  expectNamed({linkCulprit({1, 3}, true)},
              GetParam() < 6    ? 0.4
              : GetParam() < 20 ? 0.9
                                : 0.98,
              1000, [](Job& job) {
                job.linkSlowdown = [](Link link) { return link == Link{1, 3} || link == Link{3, 1} ? GetParam() : 1; };
              });
}
INSTANTIATE_TEST_SUITE_P(Times, SlowLink, testing::Values(4.0, 6.0, 20.0, 100.0));

// Real congestion takes a link to 0.3 to 0.8 of its speed; shaped links scatter by 0.4 to 0.7 % in a trap.
class ShapedLink : public testing::TestWithParam<double> {};

TEST_P(ShapedLink, IsNamedWhereProfilingSawItHoldUpTheJob) {
  for (const bool bothWays : {false, true})
    expectNamed(
        {linkCulprit({2, 4}, bothWays)}, GetParam() < 1.25 ? 0.5 : 0.99, 500,
        [&](Job& job) {
          job.everyLinkGrew();
          job.linkSlowdown = [=](Link link) {
            return link == Link{2, 4} || (bothWays && link == Link{4, 2}) ? GetParam() : 1;
          };
        },
        0.01);
}

// A ring sends one way: what is slow the other way shows in no iteration.
TEST_P(ShapedLink, IsNamedBothWaysWhereTheJobSendsOneWayOnly) {
  for (const bool bothWays : {false, true})
    expectNamed(
        {linkCulprit({2, 4}, bothWays)}, GetParam() < 1.25 ? 0.5 : 0.99, 500,
        [&](Job& job) {
          job.use = {.grown = {{{2, 4}, 0.1}}, .longerIteration = 0.1};
          job.linkSlowdown = [=](Link link) {
            return link == Link{2, 4} || (bothWays && link == Link{4, 2}) ? GetParam() : 1;
          };
        },
        0.01);
}

TEST_P(ShapedLink, IsNamedWithWhatItsNetPluginSays) {
  if (GetParam() < 1.3) return;
  Job job(1, 0.01);
  job.everyLinkGrew();
  job.linkSlowdown = [](Link link) { return link == Link{2, 4} ? GetParam() : 1; };
  Measurements measured = job.measure();
  measured.network = {{{2, 4}, {falconNetCongested, 0.83}}, {{4, 6}, {falconNetSlow, 0.2}}};
  const Verdict verdict = job.validate(measured);
  ASSERT_EQ(verdict.culprits.size(), 1U) << verdict.evidence;
  EXPECT_NE(verdict.evidence.find("; its network is congested (score 0.83)"), std::string::npos) << verdict.evidence;
  EXPECT_EQ(verdict.evidence.find("0.20"), std::string::npos) << verdict.evidence;
}

TEST_P(ShapedLink, IsNotNamedByItsRateAlone) {
  expectNamed(
      {}, 1, 200, [](Job& job) { job.linkSlowdown = [](Link link) {
                                   return link == Link{2, 4} ? GetParam() : 1;
                                 }; },
      0.01);
  expectNamed(
      {}, 1, 200,
      [](Job& job) {
        job.use = {.grown = {{{2, 4}, 0.01}}, .longerIteration = 0.1};
        job.linkSlowdown = [](Link link) { return link == Link{2, 4} ? GetParam() : 1; };
      },
      0.01);
}
INSTANTIATE_TEST_SUITE_P(Times, ShapedLink, testing::Values(1.2, 1.3, 1.5, 2.0, 2.4));

// All of them were seen to grow, as where all wait for one another: the measured rates must tell.
TEST(ShapedLinks, ThatAreHealthyAreNotNamedHoweverTheyScatter) {
  for (const double scatter : {0.003, 0.01, 0.03, 0.1, 0.3})
    expectNamed(
        {}, 1, 5000, [](Job& job) { job.everyLinkGrew(); }, scatter);
}

// Two replicas of a pipeline of two stages have four links between them, of which a slow one has two.
class TwoReplicas : public testing::TestWithParam<double> {};

TEST_P(TwoReplicas, TheirSlowLinkIsNamedBothWays) {
  const double slower = GetParam();
  expectNamed(
      {linkCulprit({0, 2}, true)}, slower < 1.5 ? 0.8 : 0.95, 500,
      [=](Job& job) {
        job.plan({{1, {0, 2}, {}}, {2, {1, 3}, {}}});
        job.everyLinkGrew();
        job.linkSlowdown = [=](Link link) { return link == Link{0, 2} || link == Link{2, 0} ? slower : 1; };
      },
      slower < 10 ? 0.01 : 0.3);
}

INSTANTIATE_TEST_SUITE_P(Times, TwoReplicas, testing::Values(1.3, 1.5, 3.0, 100.0));

TEST(TwoReplicasInHealth, NobodyIsNamed) {
  for (const double scatter : {0.01, 0.03, 0.1, 0.3})
    expectNamed(
        {}, 1, 2000,
        [](Job& job) {
          job.plan({{1, {0, 2}, {}}, {2, {1, 3}, {}}});
          job.everyLinkGrew();
        },
        scatter);
}

TEST(ShapedLinks, BothWaysOfAWholeInterfaceAreNamed) {
  int found = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Job job(seed, 0.01);
    job.everyLinkGrew();
    job.linkSlowdown = [](Link link) {
      return (link.from == 2 || link.to == 2) && link.from / 2 != link.to / 2 ? 2 : 1;
    };
    const auto named = job.validate().culprits;
    found += std::set<Culprit>(named.begin(), named.end()) ==
             std::set<Culprit>{linkCulprit({0, 2}, true), linkCulprit({2, 4}, true)};
  }
  EXPECT_GE(found, 290);
}

TEST(VerdictOnLinks, ASlowLinkNextToASlowRankIsNamedOnlyIfItStaysSlow) {
  expectNamed({rankCulprit(2), linkCulprit({2, 4})}, 0.95, 500, [](Job& job) {
    job.rankSlowdown = [](Rank rank) { return rank == 2 ? 3 : 1; };
    job.linkSlowdown = [](Link link) { return link == Link{2, 4} ? 30 : 1; };
  });
}

TEST(VerdictOnLinks, ARankAndALinkElsewhereAreBothNamed) {
  expectNamed({rankCulprit(7), linkCulprit({0, 2})}, 0.98, 500, [](Job& job) {
    job.rankSlowdown = [](Rank rank) { return rank == 7 ? 3 : 1; };
    job.linkSlowdown = [](Link link) { return link == Link{0, 2} ? 20 : 1; };
  });
}

/// What becomes of a link between two cores that tests slow beside a slow rank elsewhere.
Verdict besideASlowRank(const std::function<void(LinkUse&)>& describe) {
  Job job(1);
  job.rankSlowdown = [](Rank rank) { return rank == 6 ? 4 : 1; };
  job.linkSlowdown = [](Link link) { return link == Link{1, 0} ? 20 : 1; };
  Measurements input = job.measure();
  describe(input.use);
  return job.validate(std::move(input));
}

TEST(VerdictOnLinks, ALinkThatNobodyWaitsForIsNotNamed) {
  const std::vector<Culprit> both = {rankCulprit(6), linkCulprit({1, 0})}, one = {rankCulprit(6)};
  EXPECT_EQ(besideASlowRank([](LinkUse&) {}).culprits, both);
  EXPECT_EQ(besideASlowRank([](LinkUse& use) { use.onlyCompared = {{1, 0}}; }).culprits, one);
  EXPECT_EQ(besideASlowRank([](LinkUse& use) { use.onlyCompared = {{0, 1}, {2, 3}}; }).culprits, both);
  const auto moving = [](double seconds, double longer) {
    return [=](LinkUse& use) { use.moving = {{{1, 0}, seconds}, {{0, 1}, seconds}}, use.longerIteration = longer; };
  };
  EXPECT_EQ(besideASlowRank(moving(0.001, 0.8)).culprits, one);
  EXPECT_EQ(besideASlowRank(moving(0.1, 0.8)).culprits, both);
  EXPECT_EQ(besideASlowRank(moving(0.001, unknown)).culprits, both) << "nobody knows how much longer it takes";
}

TEST(VerdictOnLinks, WhatAnExcusedLinkGivesIsNotItsHealthyRate) {
  Job job(1);
  job.linkSlowdown = [](Link link) { return link == Link{1, 0} ? 20 : 1; };
  Measurements input = job.measure();
  input.use.onlyCompared = {{1, 0}};
  EXPECT_EQ(judgementOf(input).lookSlow, (std::set<Link>{{1, 0}}));
}

TEST(VerdictOnLinks, ALinkThatNobodyWaitsForHidesNoneThatSomebodyWaitsFor) {
  Job job(1);
  job.linkSlowdown = [](Link link) { return link == Link{0, 1} ? 10 : link == Link{6, 7} ? 16 : 1; };
  Measurements input = job.measure();
  input.use.onlyCompared = {{6, 7}};
  EXPECT_EQ(job.validate(std::move(input)).culprits, std::vector{linkCulprit({0, 1})});
}

TEST(VerdictOnLinks, WhereMostLinksAreSlowNoneIsNamed) {
  expectNamed({}, 1, 500, [](Job& job) {
    job.linkSlowdown = [](Link link) { return link.from % 2 == 0 || link.to == 1 ? 50 : 1; };
  });
}

TEST(VerdictOnLinks, ADeadLinkIsNotCertain) {
  Job job(1);
  auto input = job.measure();
  for (auto& measurement : input.links)
    if (measurement.link == Link{0, 2})
      measurement = {.communicator = 1, .link = {0, 2}, .status = LinkStatus::timeout};
  const auto verdict = job.validate(input);
  EXPECT_FALSE(verdict.certain);
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_NE(verdict.evidence.find("no answer on 0 -> 2"), std::string::npos) << verdict.evidence;
}

TEST(VerdictOnLinks, LinksThatAlwaysWereSlowerAreNotAccused) {
  Job job(6);
  job.linkSlowdown = [](Link link) { return link == Link{0, 2} ? 30 : 1; };
  auto input = job.measure();
  for (const auto& measurement : input.links) input.knownLinkRates[measurement.link] = measurement.bytesPerSecond();
  EXPECT_TRUE(job.validate(input).culprits.empty());
  // But a fast one that is now as slow as the others is.
  for (auto& measurement : input.links)
    if (measurement.link == Link{2, 4}) input.knownLinkRates[measurement.link] *= 30;
  EXPECT_EQ(job.validate(input).culprits, std::vector{linkCulprit({2, 4})});
}

Measurements twoRanks(double rate01, double rate10) {
  Measurements input;
  input.links = {{1, {0, 1}, Medium::socket, LinkStatus::measured, 1 << 20, (1 << 20) / rate01, -1},
                 {1, {1, 0}, Medium::socket, LinkStatus::measured, 1 << 20, (1 << 20) / rate10, -1}};
  const auto once = input.links;
  for (int again = 0; again < 2; ++again) input.links.insert(input.links.end(), once.begin(), once.end());
  return input;
}

TEST(VerdictOnLinks, WithoutPeersOnlyTheOwnHistoryCounts) {
  EXPECT_FALSE(judge(twoRanks(1e7, 1e9)).certain);
  auto known = twoRanks(1e7, 1e9);
  known.knownLinkRates = {{{0, 1}, 1e9}, {{1, 0}, 1e9}};
  EXPECT_EQ(judge(known).culprits, std::vector{linkCulprit({0, 1})});
  known = twoRanks(1e9, 8e8);
  known.knownLinkRates = {{{0, 1}, 1e9}, {{1, 0}, 1e9}};
  EXPECT_FALSE(judge(known).certain);
}

TEST(VerdictOnLinks, OneMeasurementNamesNoLinkButAsksForAnother) {
  Job job(7, 0.05);
  job.linkSlowdown = [](Link link) { return link == Link{0, 2} ? 3 : link == Link{1, 3} ? 100 : 1; };
  auto input = job.measure();
  EXPECT_FALSE(judge(input).certain);
  const auto doubtful = [&] {
    std::set<Link> links;
    for (const WaveLink& link : linksToConfirm(input, job.waves)) {
      EXPECT_GE(link.communicator, 1u);
      links.insert(link.link);
      input.links.push_back(job.measure(link.link));
    }
    return links;
  };
  EXPECT_EQ(doubtful(), (std::set<Link>{{0, 2}, {1, 3}}));
  EXPECT_FALSE(judge(input).certain);
  EXPECT_EQ(doubtful(), (std::set<Link>{{0, 2}, {1, 3}}));
  EXPECT_EQ(judge(input).culprits, (std::vector{linkCulprit({0, 2}), linkCulprit({1, 3})}));
  EXPECT_EQ(doubtful(), std::set<Link>{});
}

TEST(VerdictOnLinks, ALinkThatStopsAnsweringIsNotAskedForEver) {
  Job job(8, 0.05);
  job.linkSlowdown = [](Link link) { return link == Link{0, 2} ? 100 : 1; };
  auto input = job.measure();
  int asked = 0;
  while (!linksToConfirm(input, job.waves).empty() && asked < 10) {
    input.links.push_back({.communicator = 1, .link = {0, 2}, .status = LinkStatus::timeout});
    ++asked;
  }
  EXPECT_EQ(asked, 4);
  EXPECT_FALSE(judge(input).certain);
}

TEST(VerdictOnLinks, DisturbedMeasurementsAccuseNobody) {
  Job job(9, 0.05);
  auto input = job.measure();
  for (int again = 0; again < 5; ++again) {
    auto slow = job.measure({2, 4});
    slow.seconds *= 50;
    slow.waited = 0.5 * slow.seconds;
    input.links.push_back(slow);
    std::erase_if(input.links, [&](const auto& m) { return m.link == slow.link && m.waited == 0; });
  }
  EXPECT_FALSE(judge(input).certain);
  for (auto& measurement : input.links) measurement.waited = 0;
  EXPECT_EQ(judge(input).culprits, std::vector{linkCulprit({2, 4})});
}

// What a busy machine does: now and then a process loses its core, and a healthy link looks up to 16 times slower.
TEST(VerdictOnLinks, LostCoresAccuseNoLink) {
  const auto jobs = static_cast<unsigned>(test::samples(5000));
  for (unsigned seed = 0; seed < jobs; ++seed) {
    std::mt19937 random(seed);
    Job job(seed);
    job.linkSlowdown = [&](Link) { return random() % 50 == 0 ? 1 + static_cast<double>(random() % 16) : 1; };
    const auto verdict = job.validate();
    if (verdict.certain) ADD_FAILURE() << seed << ": " << verdict.evidence;
  }
}

}  // namespace
}  // namespace falcon::diagnose
