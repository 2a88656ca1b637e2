// Constructed GPUs: who is slow, and why.
#include "validate/gpu_cause.h"

#include <gtest/gtest.h>

namespace falcon::validate {
namespace {

GpuSample healthyGpu() {
  GpuSample sample;
  sample.score = {.device = "Fake 9000",
                  .bus = "0000:17:00.0",
                  .operationsPerSecond = {50e12, 300e12, 700e12, 700e12, unknown},
                  .copyRate = 3e12,
                  .toDeviceRate = 50e9,
                  .fromDeviceRate = 50e9};
  sample.span = 800ms;
  sample.before.heldByThermal = sample.after.heldByThermal = 10s;
  sample.before.heldByPower = 20s;
  sample.after.heldByPower = 20s + 300ms;  // products at full speed meet the limit everywhere
  sample.before.uncorrected = sample.after.uncorrected = 2;
  sample.after.lastXid = 0;
  return sample;
}

std::vector<GpuSample> eight() {
  return std::vector(8, healthyGpu());
}

void slowDown(GpuSample& sample, double times) {
  for (double& rate : sample.score.operationsPerSecond) rate /= times;
}

/// The judgement on number 5, after everybody else was found healthy.
GpuJudgement ofTheFifth(const std::vector<GpuSample>& samples) {
  const auto judged = judgeGpus(samples);
  EXPECT_EQ(judged.size(), samples.size());
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (i != 5) {
      EXPECT_FALSE(judged[i].slow) << i << ": " << judged[i].evidence;
    }
  }
  return judged[5];
}

TEST(JudgeGpus, EqualOnesAreHealthy) {
  const auto fifth = ofTheFifth(eight());
  EXPECT_FALSE(fifth.slow);
  EXPECT_EQ(fifth.evidence, "");
}

TEST(JudgeGpus, LessThanAFifthSlowerIsHealthy) {
  auto samples = eight();
  slowDown(samples[5], 1.19);
  EXPECT_FALSE(ofTheFifth(samples).slow);
}

TEST(JudgeGpus, HeatIsThermalThrottling) {
  auto samples = eight();
  slowDown(samples[5], 1.5);
  samples[5].after.heldByThermal = 10s + 600ms;
  samples[5].after.temperature = 91;
  samples[5].after.slowdownTemperature = 87;
  samples[5].after.reasons = 0x40;
  const auto fifth = ofTheFifth(samples);
  EXPECT_TRUE(fifth.slow);
  EXPECT_EQ(fifth.cause, Cause::thermal);
  EXPECT_NEAR(fifth.slowdown, 1.5, 1e-9);
  EXPECT_NE(
      fifth.evidence.find("heat held its clocks back for 75 % of the time; 91 C of 87 (thermal slowdown by hardware)"),
      std::string::npos)
      << fifth.evidence;
}

TEST(JudgeGpus, APowerLimitCountsOnlyBeyondItsPeers) {
  auto samples = eight();
  slowDown(samples[5], 1.5);
  EXPECT_EQ(ofTheFifth(samples).cause, Cause::hardware);
  samples[5].after.heldByPower = 20s + 750ms;
  EXPECT_EQ(ofTheFifth(samples).cause, Cause::powerCap);
}

TEST(JudgeGpus, ACriticalErrorComesFirst) {
  auto samples = eight();
  slowDown(samples[5], 2);
  samples[5].after.heldByThermal = 11s;
  samples[5].after.lastXid = 79;
  auto fifth = ofTheFifth(samples);
  EXPECT_EQ(fifth.cause, Cause::hardware);
  EXPECT_NE(fifth.evidence.find("XID 79"), std::string::npos) << fifth.evidence;
  samples[5].after.lastXid = 0;
  samples[5].after.uncorrected = 5;
  fifth = ofTheFifth(samples);
  EXPECT_NE(fifth.evidence.find("3 memory errors"), std::string::npos) << fifth.evidence;
}

TEST(JudgeGpus, AnErrorIsToldOfAHealthyOneToo) {
  auto samples = eight();
  samples[5].after.lastXid = 63;
  const auto fifth = ofTheFifth(samples);
  EXPECT_FALSE(fifth.slow);
  EXPECT_NE(fifth.evidence.find("XID 63"), std::string::npos);
}

TEST(JudgeGpus, SlowCopiesAloneAreMemory) {
  auto samples = eight();
  samples[5].score.copyRate /= 2;
  EXPECT_EQ(ofTheFifth(samples).cause, Cause::memory);
  slowDown(samples[5], 1.6);
  EXPECT_EQ(ofTheFifth(samples).cause, Cause::hardware);
}

TEST(JudgeGpus, ASlowWayToTheHostIsNamed) {
  auto samples = eight();
  samples[5].score.toDeviceRate = 5e9;
  const auto fifth = ofTheFifth(samples);
  EXPECT_TRUE(fifth.slow);
  EXPECT_EQ(fifth.cause, Cause::hardware);
  EXPECT_NE(fifth.evidence.find("host to device: 5 GB/s, its peers 50"), std::string::npos) << fifth.evidence;
}

TEST(JudgeGpus, AnotherModelIsNoPeer) {
  auto samples = eight();
  samples[5].score.device = "Fake 4000";
  slowDown(samples[5], 4);
  EXPECT_FALSE(ofTheFifth(samples).slow);
}

TEST(JudgeGpus, OfTwoNobodyIsTheOddOne) {
  std::vector<GpuSample> two(2, healthyGpu());
  slowDown(two[1], 4);
  for (const auto& each : judgeGpus(two)) EXPECT_FALSE(each.slow) << each.evidence;
}

}  // namespace
}  // namespace falcon::validate
