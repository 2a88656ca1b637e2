// The GPU's test over a module that stands for cuBLAS; the real module where there is one.
#include "validate/gpu_test.h"
#include "base/module_file.h"

#include <gtest/gtest.h>

#include <cmath>

namespace falcon::validate {
namespace {

TEST(GpuBenchmark, GivesWhatTheModuleMeasured) {
  const auto bench = openGpuBenchmark(FALCON_FAKE_GPU);
  ASSERT_TRUE(bench) << bench.error().message();
  EXPECT_EQ(*(*bench)->devices(), 2);
  const auto first = (*bench)->run(0, 500ms);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->device, "Fake 9000");
  EXPECT_EQ(first->bus, "0000:00:00.0");
  EXPECT_EQ(first->operationsPerSecond[falconGpuFloat8], 2e12);
  EXPECT_EQ(first->copyRate, 5e11);
  EXPECT_EQ(first->toDeviceRate, 2e10);
  EXPECT_EQ(first->fromDeviceRate, 3e10);
}

TEST(GpuBenchmark, WhatADeviceCannotDoIsNotZero) {
  const auto bench = openGpuBenchmark(FALCON_FAKE_GPU);
  ASSERT_TRUE(bench);
  const auto second = (*bench)->run(1, 500ms);
  ASSERT_TRUE(second);
  EXPECT_TRUE(std::isnan(second->operationsPerSecond[falconGpuFloat8]));
  EXPECT_EQ(second->operationsPerSecond[falconGpuFloat16], 1e12);
}

TEST(GpuBenchmark, AFailureSaysWhatTheModuleSaid) {
  const auto bench = openGpuBenchmark(FALCON_FAKE_GPU);
  ASSERT_TRUE(bench);
  const auto third = (*bench)->run(2, 500ms);
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message().find("invalid device ordinal"), std::string::npos);
}

TEST(GpuBenchmark, AMissingOrForeignModuleIsAnError) {
  const auto missing = openGpuBenchmark("/nowhere/libnccl_falcon_gpu.so");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("/nowhere/libnccl_falcon_gpu.so"), std::string::npos);
  EXPECT_FALSE(openGpuBenchmark(FALCON_FAKE_NVML));
}

TEST(GpuBenchmark, TheRealModuleMeasuresOrSaysWhyNot) {
  const auto bench = openGpuBenchmark();
  if (!bench) GTEST_SKIP() << "not built here: " << bench.error().message();
  const auto devices = (*bench)->devices();
  if (!devices) {
    EXPECT_NE(devices.error().message().find("no GPU: "), std::string::npos);
    EXPECT_FALSE((*bench)->run(0, 100ms));
    return;
  }
  const auto score = (*bench)->run(0, 800ms);
  ASSERT_TRUE(score) << score.error().message();
  EXPECT_GT(score->operationsPerSecond[falconGpuFloat32], 1e11);
  EXPECT_GT(score->copyRate, 1e10);
  EXPECT_FALSE(score->bus.empty());
}

}  // namespace
}  // namespace falcon::validate
