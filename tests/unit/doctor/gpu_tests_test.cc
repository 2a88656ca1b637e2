// GPUs of a doctor's job: how they travel, and who is called slow.
#include "doctor/gpu_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "doctor/findings.h"
#include "doctor/report.h"

namespace falcon::doctor {
namespace {

GpuMeasurement measured(Rank rank) {
  GpuMeasurement gpu{.rank = rank};
  gpu.sample.score = {.device = "Fake 9000",
                      .bus = "0000:17:00.0",
                      .operationsPerSecond = {50e12, 300e12, 700e12, 700e12, validate::unknown},
                      .copyRate = 3e12,
                      .toDeviceRate = 50e9,
                      .fromDeviceRate = 51e9};
  gpu.sample.span = 800ms;
  gpu.sample.after.temperature = 61;
  gpu.sample.after.heldByPower = 3s;
  gpu.sample.after.reasons = 4;
  return gpu;
}

Measurements ofFour() {
  Measurements all;
  all.rounds.emplace_back();
  for (Rank rank = 0; rank < 4; ++rank) {
    all.sites.push_back({"node", "10.0.0.1", "node"});
    all.rounds[0].push_back({50, 25, 8e9, 3e9, {}});
    all.gpus.push_back(measured(rank));
  }
  return all;
}

TEST(DoctorsGpus, TravelWhole) {
  const auto sent = measured(3);
  const auto got = decodeGpu(encode(sent));
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->rank, 3);
  EXPECT_EQ((*got)->problem, "");
  const auto& sample = (*got)->sample;
  EXPECT_EQ(sample.score.device, "Fake 9000");
  EXPECT_EQ(sample.score.bus, "0000:17:00.0");
  EXPECT_EQ(sample.score.operationsPerSecond[falconGpuBfloat16], 700e12);
  EXPECT_TRUE(std::isnan(sample.score.operationsPerSecond[falconGpuFloat8]));
  EXPECT_EQ(sample.score.fromDeviceRate, 51e9);
  EXPECT_EQ(sample.span, 800ms);
  EXPECT_EQ(sample.after.temperature, 61);
  EXPECT_EQ(sample.after.heldByPower, 3s);
  EXPECT_EQ(sample.after.reasons, 4u);
  EXPECT_FALSE(sample.before.heldByPower);
  EXPECT_FALSE(sample.after.lastXid);
}

TEST(DoctorsGpus, NoneIsNoneAndRubbishIsRefused) {
  EXPECT_EQ(encode(std::nullopt), "");
  const auto none = decodeGpu("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const std::string bytes = encode(measured(0));
  for (std::size_t length = 1; length < bytes.size(); ++length) EXPECT_FALSE(decodeGpu(bytes.substr(0, length)));
  EXPECT_FALSE(decodeGpu(bytes + "x"));
}

TEST(DoctorsGpus, EqualOnesAreHealthyAndInTheTable) {
  const auto all = ofFour();
  const auto findings = examine(all);
  EXPECT_TRUE(findings.healthy());
  const std::string text = table(all, findings);
  EXPECT_NE(text.find("Fake 9000"), std::string::npos);
  EXPECT_NE(text.find("300.0"), std::string::npos);
}

TEST(DoctorsGpus, ASlowOneIsNamedWithItsRank) {
  auto all = ofFour();
  for (double& rate : all.gpus[2].sample.score.operationsPerSecond) rate /= 1.5;
  const auto findings = examine(all);
  ASSERT_EQ(findings.slow.size(), 1u);
  EXPECT_EQ(findings.slow[0].subject, Subject::gpu);
  EXPECT_EQ(findings.slow[0].rank, 2);
  EXPECT_NE(findings.slow[0].text.find("rank 2's GPU (Fake 9000 at 0000:17:00.0) is slow: "), std::string::npos);
  const auto object = nlohmann::json::parse(json(all, findings));
  EXPECT_EQ(object["slow"][0]["what"], "gpu");
  EXPECT_EQ(object["slow"][0]["rank"], 2);
  EXPECT_EQ(object["gpus"].size(), 4u);
  EXPECT_EQ(object["gpus"][0]["held_back_by"], "power cap");
  EXPECT_TRUE(object["gpus"][0]["f8_flops"].is_null());
}

TEST(DoctorsGpus, OneThatCouldNotBeTestedIsANoteAndNoFinding) {
  auto all = ofFour();
  all.gpus[1].problem = "it has fallen off the bus";
  const auto findings = examine(all);
  EXPECT_TRUE(findings.healthy());
  ASSERT_FALSE(findings.notes.empty());
  EXPECT_EQ(findings.notes[0], "rank 1's GPU was not tested: it has fallen off the bus");
}

}  // namespace
}  // namespace falcon::doctor
