// Verdicts on constructed measurements: the guilty are named, and the innocent never.
#include "validate/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "validate/link_plan.h"

namespace falcon::validate {
namespace {

using transport::Medium;

/// Eight ranks, DP groups {0,2,4,6} and {1,3,5,7}, PP pairs: what the demonstration runs; measured with noise.
class Job {
 public:
  explicit Job(unsigned seed, double linkScatter = 0.3, double scoreScatter = 0.1, double growthScatter = 0.05)
      : random_(seed), linkScatter_(linkScatter), scoreScatter_(scoreScatter), growthScatter_(growthScatter) {
    const std::vector<TestedGroup> groups = {{1, {0, 2, 4, 6}, {}}, {2, {1, 3, 5, 7}, {}}, {3, {0, 1}, {}},
                                             {4, {2, 3}, {}},       {5, {4, 5}, {}},       {6, {6, 7}, {}}};
    std::map<Rank, RankPlace> places;
    for (Rank rank = 0; rank < ranks; ++rank) places[rank] = {"node" + std::to_string(rank / 2), "", "machine"};
    waves = planLinkTests(groups, places, {}, 1);
  }

  static constexpr int ranks = 8;
  std::vector<Wave> waves;
  std::function<double(Rank)> rankSlowdown = [](Rank) { return 1.0; };
  std::function<double(Link)> linkSlowdown = [](Link) { return 1.0; };
  double everybody = 1;  ///< a busy neighbour: all ranks and links alike
  bool ownTimesKnown = true;

  VerdictInput measure() {
    VerdictInput input;
    for (Rank rank = 0; rank < ranks; ++rank) {
      RankFigures figures{.rank = rank};
      const double slowdown = everybody * rankSlowdown(rank);
      figures.score = 10 / slowdown * noise(scoreScatter_);
      if (ownTimesKnown) figures.ownTimeGrowth = slowdown * noise(growthScatter_);
      input.ranks.push_back(figures);
    }
    for (const Wave& wave : waves)
      for (const WaveLink& link : wave.links) input.links.push_back(measure(link.link));
    return input;
  }
  LinkMeasurement measure(Link link) {
    const bool shared = link.from / 2 == link.to / 2;
    const double slowdown = everybody * std::max(rankSlowdown(link.from), rankSlowdown(link.to)) * linkSlowdown(link);
    return {.communicator = 1,
            .link = link,
            .medium = shared ? Medium::sharedMemory : Medium::socket,
            .status = LinkStatus::measured,
            .bytes = 1 << 20,
            .seconds = (1 << 20) / (shared ? 4e9 : 1e9) * slowdown * noise(linkScatter_)};
  }
  /// As the controller does: measures doubtful links again as long as it is asked to.
  Verdict validate(VerdictInput input) {
    for (auto doubtful = linksToConfirm(input, waves); !doubtful.empty(); doubtful = linksToConfirm(input, waves))
      for (const WaveLink& link : doubtful) input.links.push_back(measure(link.link));
    return judge(input);
  }
  Verdict validate() { return validate(measure()); }

 private:
  double noise(double scatter) { return std::exp(scatter * normal_(random_)); }
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  double linkScatter_, scoreScatter_, growthScatter_;
};

Culprit rankCulprit(Rank rank) {
  return {.kind = CulpritKind::rank, .rank = rank};
}
Culprit linkCulprit(Link link, bool bothWays = false) {
  return {.kind = CulpritKind::link, .link = link, .bothWays = bothWays};
}

/// Nobody but `guilty` is ever named; `guilty` are named in at least `share` of the draws.
void expectNamed(const std::vector<Culprit>& guilty, double share, int draws, const std::function<void(Job&)>& harm,
                 double linkScatter = 0.3) {
  int found = 0;
  for (int seed = 0; seed < draws; ++seed) {
    Job job(static_cast<unsigned>(seed), linkScatter);
    harm(job);
    const auto verdict = job.validate();
    EXPECT_EQ(verdict.certain, !verdict.culprits.empty());
    EXPECT_FALSE(verdict.evidence.empty());
    EXPECT_TRUE(verdict.confidence >= 0 && verdict.confidence <= 1) << verdict.confidence;
    for (const Culprit& culprit : verdict.culprits) {
      // Of a link that is slow both ways, one way may fail to be certain.
      const bool innocent = std::none_of(guilty.begin(), guilty.end(), [&](const Culprit& g) {
        return culprit == g || (g.bothWays && culprit.kind == CulpritKind::link &&
                                (culprit.link == g.link || culprit.link == Link{g.link.to, g.link.from}));
      });
      EXPECT_FALSE(innocent) << "seed " << seed << ": " << nameOf(culprit) << ": " << verdict.evidence;
    }
    auto named = verdict.culprits;
    std::sort(named.begin(), named.end());
    auto wanted = guilty;
    std::sort(wanted.begin(), wanted.end());
    found += named == wanted;
  }
  EXPECT_GE(found, share * draws);
}

TEST(Verdict, NobodyIsNamedInTenThousandHealthyJobs) {
  expectNamed({}, 1, 10000, [](Job&) {});
}

TEST(Verdict, NobodyIsNamedWhereOwnTimesAreUnknown) {
  expectNamed({}, 1, 10000, [](Job& job) { job.ownTimesKnown = false; });
}

TEST(Verdict, ABusyNeighbourSlowsAllAndAccusesNobody) {
  for (const double slowdown : {1.3, 2.0, 5.0}) expectNamed({}, 1, 1000, [&](Job& job) { job.everybody = slowdown; });
}

TEST(Verdict, ASlowRankIsNamedAndExplainsItsLinks) {
  for (const double slowdown : {1.6, 2.0, 3.0, 6.0})
    expectNamed({rankCulprit(3)}, slowdown < 2 ? 0.7 : 0.99, 1000,
                [&](Job& job) { job.rankSlowdown = [=](Rank rank) { return rank == 3 ? slowdown : 1; }; });
}

TEST(Verdict, ASlowRankIsNamedByItsTestAlone) {
  expectNamed({rankCulprit(5)}, 0.95, 1000, [](Job& job) {
    job.ownTimesKnown = false;
    job.rankSlowdown = [](Rank rank) { return rank == 5 ? 3 : 1; };
  });
}

TEST(Verdict, TwoSlowRanksAreBothNamed) {
  expectNamed({rankCulprit(0), rankCulprit(7)}, 0.98, 500, [](Job& job) {
    job.rankSlowdown = [](Rank rank) { return rank == 0 ? 2.5 : rank == 7 ? 3 : 1; };
  });
}

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

TEST(Verdict, ASlowLinkNextToASlowRankIsNamedOnlyIfItStaysSlow) {
  expectNamed({rankCulprit(2), linkCulprit({2, 4})}, 0.95, 500, [](Job& job) {
    job.rankSlowdown = [](Rank rank) { return rank == 2 ? 3 : 1; };
    job.linkSlowdown = [](Link link) { return link == Link{2, 4} ? 30 : 1; };
  });
}

TEST(Verdict, ARankAndALinkElsewhereAreBothNamed) {
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
  VerdictInput input = job.measure();
  describe(input.use);
  return job.validate(std::move(input));
}

TEST(Verdict, ALinkThatNobodyWaitsForIsNotNamed) {
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

TEST(Verdict, WhatAnExcusedLinkGivesIsNotItsHealthyRate) {
  Job job(1);
  job.linkSlowdown = [](Link link) { return link == Link{1, 0} ? 20 : 1; };
  VerdictInput input = job.measure();
  input.use.onlyCompared = {{1, 0}};
  EXPECT_EQ(linksThatLookSlow(input), (std::set<Link>{{1, 0}}));
}

TEST(Verdict, ALinkThatNobodyWaitsForHidesNoneThatSomebodyWaitsFor) {
  Job job(1);
  job.linkSlowdown = [](Link link) { return link == Link{0, 1} ? 10 : link == Link{6, 7} ? 16 : 1; };
  VerdictInput input = job.measure();
  input.use.onlyCompared = {{6, 7}};
  EXPECT_EQ(job.validate(std::move(input)).culprits, std::vector{linkCulprit({0, 1})});
}

TEST(Verdict, WhereMostLinksAreSlowNoneIsNamed) {
  expectNamed({}, 1, 500, [](Job& job) {
    job.linkSlowdown = [](Link link) { return link.from % 2 == 0 || link.to == 1 ? 50 : 1; };
  });
}

TEST(Verdict, ADeadLinkIsNotCertain) {
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

TEST(Verdict, AThrottledRankWhoseOwnTimeGrewIsNamedEvenIfItsScoreIsNot) {
  Job job(1);
  auto input = job.measure();
  for (auto& rank : input.ranks) rank.throttledShare = 0;
  input.ranks[6].throttledShare = 0.4;
  input.ranks[6].ownTimeGrowth = 1.5;
  const auto verdict = judge(input);
  EXPECT_TRUE(verdict.certain);
  EXPECT_EQ(verdict.culprits, std::vector{rankCulprit(6)});
  EXPECT_NE(verdict.evidence.find("throttled 40 %"), std::string::npos) << verdict.evidence;
}

TEST(Verdict, ACommonQuotaAccusesNobody) {
  Job job(2);
  auto input = job.measure();
  for (auto& rank : input.ranks) rank.throttledShare = 0.6 + 0.01 * rank.rank;
  EXPECT_TRUE(judge(input).culprits.empty());
}

TEST(Verdict, ASlowTestOfARankThatIsNotSlowInTheJobIsBadLuck) {
  Job job(3);
  auto input = job.measure();
  for (auto& rank : input.ranks) rank.ownTimeGrowth = 1;
  input.ranks[4].score /= 1.8;
  const auto verdict = judge(input);
  EXPECT_FALSE(verdict.certain);
  EXPECT_NE(verdict.evidence.find("rank 4 is not named"), std::string::npos) << verdict.evidence;
}

/// What the kernel counted in a test of eight ranks on two cores: each ran for a quarter of it.
CauseEvidence onSharedCores(double ran) {
  return {.throttled = 0, .waited = 1 - ran, .stolen = 0, .ran = ran, .processors = 2};
}

TEST(Verdict, ACoreLostForATestIsNotASlowRank) {
  for (const double growth : {1.0, 1.1, 1.17}) {  // 1.17 was seen on a busy machine, with a test 2.6 times slower
    VerdictInput input = Job(1).measure();
    for (RankFigures& rank : input.ranks) {
      rank.score = 10, rank.ownTimeGrowth = 1;
      rank.evidence = onSharedCores(0.25);
    }
    input.ranks[0].score = 10 / 2.63;
    input.ranks[0].ownTimeGrowth = growth;
    input.ranks[0].evidence = onSharedCores(0.25 / 2.63);
    EXPECT_FALSE(judge(input).certain) << growth << ' ' << judge(input).evidence;
    // The same figures of a processor that ran: it is what is slow.
    input.ranks[0].evidence = onSharedCores(0.25);
    if (growth > 1.1) {
      EXPECT_TRUE(judge(input).certain) << growth << ' ' << judge(input).evidence;
    }
  }
}

TEST(Verdict, WhatTheKernelCountedIsSaidAsTheCause) {
  const auto evidenceWith = [](const CauseEvidence& counted) {
    VerdictInput input = Job(1).measure();
    for (RankFigures& rank : input.ranks) rank.evidence = onSharedCores(0.9);
    input.ranks[3].score = 4;
    input.ranks[3].ownTimeGrowth = 2.5;
    input.ranks[3].evidence = counted;
    const Verdict verdict = judge(input);
    EXPECT_TRUE(verdict.certain);
    return verdict.evidence;
  };
  EXPECT_NE(evidenceWith(onSharedCores(0.4)).find("CPU contention"), std::string::npos);
  CauseEvidence quota = onSharedCores(0.4);
  quota.throttled = 0.6;
  EXPECT_NE(evidenceWith(quota).find("CPU quota"), std::string::npos);
  EXPECT_NE(evidenceWith(onSharedCores(0.95)).find("unknown hardware"), std::string::npos);
  CauseEvidence stolen = onSharedCores(0.4);
  stolen.stolen = 0.5;
  EXPECT_NE(evidenceWith(stolen).find("hypervisor"), std::string::npos);
}

TEST(Verdict, OwnTimeThatGrewThoughTheProcessorPassesIsNamedAsACauseOutside) {
  Job job(4);
  auto input = job.measure();
  for (auto& rank : input.ranks) rank.ownTimeGrowth = rank.rank == 1 ? 3 : 1, rank.score = 10;
  const auto verdict = judge(input);
  EXPECT_EQ(verdict.culprits, std::vector{rankCulprit(1)});
  EXPECT_NE(verdict.evidence.find("outside"), std::string::npos) << verdict.evidence;
}

TEST(Verdict, OwnTimeThatGrewIsNotNamedForADelayThatIsSomebodyElses) {
  const Culprit slow = linkCulprit({2, 4});
  for (int seed = 0; seed < 200; ++seed) {
    const auto verdictWith = [&](double shareOfDelay) {
      Job job(static_cast<unsigned>(seed));
      job.linkSlowdown = [](Link link) { return link == Link{2, 4} ? 400 : 1; };
      auto input = job.measure();
      for (auto& rank : input.ranks)
        rank.score = 10, rank.ownTimeGrowth = rank.rank == 2 ? 1.7 : 1,
        rank.shareOfDelay = rank.rank == 2 ? shareOfDelay : 0;
      return job.validate(std::move(input));
    };
    EXPECT_EQ(verdictWith(0.13).culprits, std::vector{slow}) << "seed " << seed;
    const std::vector<Culprit> both = {rankCulprit(2), slow};
    EXPECT_EQ(verdictWith(0.5).culprits, both) << "seed " << seed;
    EXPECT_EQ(verdictWith(unknown).culprits, both) << "seed " << seed;
  }
}

TEST(Verdict, UnequalProcessorsAreJudgedByTheirOwnBaseline) {
  Job job(5);
  auto input = job.measure();
  for (auto& rank : input.ranks) {
    const double healthy = rank.rank < 2 ? 2 : 10;  // two old machines
    rank.baselineScore = healthy;
    rank.score = rank.rank == 6 ? healthy / 4 : healthy;
    rank.ownTimeGrowth = rank.rank == 6 ? 4 : 1;
  }
  EXPECT_EQ(judge(input).culprits, std::vector{rankCulprit(6)});
}

TEST(Verdict, LinksThatAlwaysWereSlowerAreNotAccused) {
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

VerdictInput twoRanks(double rate01, double rate10) {
  VerdictInput input;
  input.links = {{1, {0, 1}, Medium::socket, LinkStatus::measured, 1 << 20, (1 << 20) / rate01, -1},
                 {1, {1, 0}, Medium::socket, LinkStatus::measured, 1 << 20, (1 << 20) / rate10, -1}};
  const auto once = input.links;
  for (int again = 0; again < 2; ++again) input.links.insert(input.links.end(), once.begin(), once.end());
  return input;
}

TEST(Verdict, WithoutPeersOnlyTheOwnHistoryCounts) {
  EXPECT_FALSE(judge(twoRanks(1e7, 1e9)).certain);
  auto known = twoRanks(1e7, 1e9);
  known.knownLinkRates = {{{0, 1}, 1e9}, {{1, 0}, 1e9}};
  EXPECT_EQ(judge(known).culprits, std::vector{linkCulprit({0, 1})});
  known = twoRanks(1e9, 8e8);
  known.knownLinkRates = {{{0, 1}, 1e9}, {{1, 0}, 1e9}};
  EXPECT_FALSE(judge(known).certain);
}

TEST(Verdict, OfTwoRanksTheOneWhoseOwnTimeGrewIsNamed) {
  VerdictInput input;
  input.ranks = {{.rank = 0, .score = 10, .ownTimeGrowth = 1}, {.rank = 1, .score = 4, .ownTimeGrowth = 2.4}};
  EXPECT_EQ(judge(input).culprits, std::vector{rankCulprit(1)});
  input.ranks[1].ownTimeGrowth = 1;
  EXPECT_TRUE(judge(input).culprits.empty());
}

TEST(Verdict, NothingMeasuredNamesNobody) {
  EXPECT_FALSE(judge({}).certain);
  EXPECT_FALSE(judge({}).evidence.empty());
  VerdictInput input;
  input.ranks = {{.rank = 0}, {.rank = 1}, {.rank = 2, .score = 0, .ownTimeGrowth = 0}};
  EXPECT_FALSE(judge(input).certain);
}

TEST(Verdict, OneMeasurementNamesNoLinkButAsksForAnother) {
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

TEST(Verdict, ALinkThatStopsAnsweringIsNotAskedForEver) {
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

TEST(Verdict, DisturbedMeasurementsAccuseNobody) {
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
TEST(Verdict, LostCoresAccuseNoLink) {
  for (unsigned seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    Job job(seed);
    job.linkSlowdown = [&](Link) { return random() % 50 == 0 ? 1 + static_cast<double>(random() % 16) : 1; };
    const auto verdict = job.validate();
    if (verdict.certain) ADD_FAILURE() << seed << ": " << verdict.evidence;
  }
}

TEST(VerdictCause, OfARankThatMovesMemorySlowlyIsItsMemory) {
  VerdictInput input;
  for (Rank rank = 0; rank < 8; ++rank) {
    RankFigures figures{.rank = rank, .score = 10, .memoryRate = 8e9, .ownTimeGrowth = 1};
    figures.evidence.ran = 0.5;
    input.ranks.push_back(figures);
  }
  input.ranks[3].ownTimeGrowth = 2;
  input.ranks[3].memoryRate = 2e9;
  const Verdict found = judge(input);
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 3);
  EXPECT_NE(found.evidence.find("memory bandwidth: it moves memory 4.00 times slower"), std::string::npos)
      << found.evidence;
}

}  // namespace
}  // namespace falcon::validate
