// Who is slow, on constructed measurements.
#include "doctor/findings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "doctor/links_to_test.h"
#include "doctor/report.h"
#include "doctor/spread.h"

namespace falcon::doctor {
namespace {

using transport::Medium;
using validate::Cause;
using validate::LinkMeasurement;
using validate::LinkStatus;

constexpr int ranks = 8;

/// Eight ranks on four nodes with noise of a few percent.
class Cluster {
 public:
  explicit Cluster(unsigned seed) : random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string node = "node" + std::to_string(rank / 2);
      measured.sites.push_back({node, "10.0.0." + std::to_string(rank), node});
    }
    measured.product = "a test's";
    for (int round = 0; round < 3; ++round) {
      measured.rounds.emplace_back();
      for (int rank = 0; rank < ranks; ++rank) {
        RankSample sample{around(50), around(25), around(8e9), around(3e9), {}};
        sample.evidence.throttled = 0;
        sample.evidence.waited = 0.02;
        sample.evidence.stolen = 0;
        sample.evidence.ran = 0.97;
        sample.evidence.processors = 4;
        measured.rounds.back().push_back(sample);
      }
      for (const Link& link : linksToTest(measured.sites)) measured.links.push_back(measure(link));
    }
    for (int group = 0; group < 4; ++group)
      measured.groups.push_back(
          {"switch" + std::to_string(group), {2 * group, 2 * group + 1}, {around(0.01), around(0.01), around(0.01)}});
  }

  Measurements measured;

  void each(Rank rank, const std::function<void(RankSample&)>& change) {
    for (auto& round : measured.rounds) change(round[static_cast<std::size_t>(rank)]);
  }

 private:
  double around(double value) { return value * std::exp(0.03 * normal_(random_)); }
  LinkMeasurement measure(Link link) {
    const bool shared = link.from / 2 == link.to / 2;
    return {.communicator = 1,
            .link = link,
            .medium = shared ? Medium::sharedMemory : Medium::socket,
            .status = LinkStatus::measured,
            .bytes = 1 << 20,
            .seconds = (1 << 20) / around(shared ? 4e9 : 1e9)};
  }
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

const Finding& only(const Findings& findings) {
  EXPECT_EQ(findings.slow.size(), 1u);
  static const Finding none;
  return findings.slow.empty() ? none : findings.slow[0];
}

TEST(Findings, NobodyInHundredsOfHealthyClusters) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const auto findings = examine(Cluster(seed).measured);
    EXPECT_TRUE(findings.healthy()) << findings.slow[0].text;
  }
}

TEST(Findings, ASlowProcessorWithItsCause) {
  Cluster cluster(1);
  cluster.each(3, [](RankSample& sample) {
    sample.gigaflops32 /= 3, sample.gigaflops64 /= 3, sample.memoryRate /= 3, sample.loopbackRate /= 3;
    sample.evidence.throttled = 0.65;
    sample.evidence.ran = 0.33;
  });
  const auto findings = examine(cluster.measured);
  const auto& slow = only(findings);
  EXPECT_EQ(slow.subject, Subject::processor);
  EXPECT_EQ(slow.rank, 3);
  EXPECT_EQ(slow.cause, Cause::quota);
  EXPECT_NEAR(slow.slowdown, 3, 0.4);
}

TEST(Findings, ASlowProcessorThatNothingHeldBackIsHardware) {
  Cluster cluster(2);
  cluster.each(6, [](RankSample& sample) {
    sample.gigaflops64 /= 3;
    sample.gigaflops32 /= 3;
  });
  EXPECT_EQ(only(examine(cluster.measured)).cause, Cause::hardware);
}

TEST(Findings, SlowMemoryAndSlowLoopbackAlone) {
  Cluster memory(3), loopback(4);
  memory.each(2, [](RankSample& sample) { sample.memoryRate /= 4; });
  loopback.each(5, [](RankSample& sample) { sample.loopbackRate /= 4; });
  EXPECT_EQ(only(examine(memory.measured)).subject, Subject::memory);
  EXPECT_EQ(only(examine(memory.measured)).rank, 2);
  EXPECT_EQ(only(examine(loopback.measured)).subject, Subject::loopback);
  EXPECT_EQ(only(examine(loopback.measured)).rank, 5);
}

TEST(Findings, OneDirectionOfALinkAndOneThatDoesNotAnswer) {
  Cluster slow(5), silent(6);
  for (auto& link : slow.measured.links)
    if (link.link == Link{0, 2}) link.seconds *= 10;
  EXPECT_EQ(only(examine(slow.measured)).subject, Subject::link);
  EXPECT_EQ(only(examine(slow.measured)).link, (Link{0, 2}));
  for (auto& link : silent.measured.links)
    if (link.link == Link{2, 4}) link.status = LinkStatus::timeout, link.bytes = 0;
  EXPECT_EQ(only(examine(silent.measured)).link, (Link{2, 4}));
  EXPECT_EQ(only(examine(silent.measured)).slowdown, 0);
}

TEST(Findings, ASlowSwitch) {
  Cluster cluster(7);
  for (double& time : cluster.measured.groups[2].times) time *= 5;
  EXPECT_EQ(only(examine(cluster.measured)).group, "switch2");
}

TEST(Findings, AQuotaThatHitsAllIsANoteAndAccusesNobody) {
  Cluster cluster(8);
  for (Rank rank = 0; rank < ranks; ++rank)
    cluster.each(rank, [](RankSample& sample) { sample.evidence.throttled = 0.5; });
  const auto findings = examine(cluster.measured);
  EXPECT_TRUE(findings.healthy());
  EXPECT_FALSE(findings.notes.empty());
}

TEST(Findings, WhatCouldNotBeMeasuredAccusesNobody) {
  Cluster cluster(9);
  cluster.each(1, [](RankSample& sample) { sample = {}; });
  cluster.measured.groups.clear();
  EXPECT_TRUE(examine(cluster.measured).healthy());
  const auto text = nlohmann::json::parse(json(cluster.measured, examine(cluster.measured)));
  EXPECT_TRUE(text.at("ranks").at(1).at("f32_gflops").is_null());
  EXPECT_NE(table(cluster.measured, examine(cluster.measured)).find("healthy"), std::string::npos);
}

TEST(Findings, AreToldToPrograms) {
  Cluster cluster(10);
  cluster.each(4, [](RankSample& sample) { sample.gigaflops32 /= 4, sample.gigaflops64 /= 4; });
  const auto findings = examine(cluster.measured);
  const auto text = nlohmann::json::parse(json(cluster.measured, findings));
  EXPECT_FALSE(text.at("healthy"));
  EXPECT_EQ(text.at("slow").at(0).at("rank"), 4);
  EXPECT_EQ(text.at("ranks").size(), 8u);
  EXPECT_EQ(text.at("links").size(), cluster.measured.links.size());
  EXPECT_NE(table(cluster.measured, findings).find("SLOW: rank 4 computes"), std::string::npos);
}

TEST(Summary, OneLineForEachKindOfLinkWithItsSlowest) {
  Cluster cluster(11);
  for (auto& link : cluster.measured.links)
    if (link.link == Link{4, 6}) link.seconds *= 2;
  const auto types = summarize(cluster.measured);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].type, "shared memory");
  EXPECT_EQ(types[0].links, 8);
  EXPECT_EQ(types[1].slowest, (Link{4, 6}));
  EXPECT_GT(types[1].variation, 0);
  EXPECT_LT(types[1].variation, 0.2);
}

TEST(Samples, TravelWhole) {
  RankSample sample{1, 2, 3, 4, {}};
  sample.evidence.waited = 0.5;
  sample.evidence.power = 0.25;
  const auto read = decodeSample(encode(sample));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->loopbackRate, 4);
  EXPECT_EQ(read->evidence.waited, 0.5);
  EXPECT_EQ(read->evidence.power, 0.25);
  EXPECT_TRUE(std::isnan(read->evidence.stolen));
  EXPECT_FALSE(decodeSample(encode(sample).substr(1)));
}

TEST(Spread, IsDeviationOverMean) {
  EXPECT_NEAR(variation({9, 11}), std::sqrt(2) / 10, 1e-12);
  EXPECT_EQ(variation({5, 5, 5}), 0);
  EXPECT_TRUE(std::isnan(variation({5})));
}

}  // namespace
}  // namespace falcon::doctor
