// What tests of verdicts judge: a constructed job, measured with noise.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "diagnose/verdict.h"
#include "harness/thoroughness.h"
#include "validate/link_plan.h"

namespace falcon::diagnose {

using transport::Medium;
using validate::CauseEvidence;
using validate::LinkMeasurement;
using validate::LinkStatus;
using validate::RankSite;
using validate::TestedGroup;
using validate::Wave;
using validate::WaveLink;

/// Eight ranks, DP groups {0,2,4,6} and {1,3,5,7}, PP pairs: what the demonstration runs; measured with noise.
class Job {
 public:
  explicit Job(unsigned seed, double linkScatter = 0.3, double scoreScatter = 0.1, double growthScatter = 0.05)
      : random_(seed), linkScatter_(linkScatter), scoreScatter_(scoreScatter), growthScatter_(growthScatter) {
    plan({{1, {0, 2, 4, 6}, {}},
          {2, {1, 3, 5, 7}, {}},
          {3, {0, 1}, {}},
          {4, {2, 3}, {}},
          {5, {4, 5}, {}},
          {6, {6, 7}, {}}});
  }

  /// Only these groups' links are measured.
  void plan(const std::vector<TestedGroup>& groups) {
    std::map<Rank, RankSite> sites;
    for (Rank rank = 0; rank < ranks; ++rank) sites[rank] = {"node" + std::to_string(rank / 2), "", "machine"};
    waves = validate::planLinkTests(groups, sites, {}, 1);
  }

  static constexpr int ranks = 8;
  std::vector<Wave> waves;
  std::function<double(Rank)> rankSlowdown = [](Rank) { return 1.0; };
  std::function<double(Link)> linkSlowdown = [](Link) { return 1.0; };
  double everybody = 1;  ///< a busy neighbour: all ranks and links alike
  bool ownTimesKnown = true;
  LinkUse use;  ///< what profiling saw

  /// As if profiling had seen the bytes of every link take all that iterations became longer by: accuses nobody alone.
  void everyLinkGrew() {
    use.longerIteration = 0.1;
    for (const Wave& wave : waves)
      for (const WaveLink& link : wave.links) use.grown[link.link] = 0.1;
  }

  Measurements measure() {
    Measurements input;
    input.use = use;
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
  Verdict validate(Measurements input) {
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

inline Culprit rankCulprit(Rank rank) {
  return {.kind = CulpritKind::rank, .rank = rank};
}
inline Culprit linkCulprit(Link link, bool bothWays = false) {
  return {.kind = CulpritKind::link, .link = link, .bothWays = bothWays};
}

/// Nobody but `guilty` is ever named; `guilty` are named in at least `share` of the draws.
inline void expectNamed(const std::vector<Culprit>& guilty, double share, int draws,
                        const std::function<void(Job&)>& harm, double linkScatter = 0.3) {
  int found = 0;
  draws = test::samples(draws);
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

}  // namespace falcon::diagnose
