// What NVML tells, over a library that stands for it.
#include "validate/gpu_state.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace falcon::validate {
namespace {

TEST(GpuManagement, GivesWhatTheLibraryTells) {
  const auto management = openGpuManagement(FALCON_FAKE_NVML);
  ASSERT_TRUE(management) << management.error().message();
  const auto state = (*management)->stateOf("0000:17:00.0");
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->clock, 1200);
  EXPECT_EQ(state->highestClock, 1980);
  EXPECT_EQ(state->temperature, 88);
  EXPECT_EQ(state->slowdownTemperature, 87);
  EXPECT_DOUBLE_EQ(state->power.value_or(0), 699.5);
  EXPECT_FALSE(state->powerLimit) << "what the device does not support stays empty";
  EXPECT_EQ(state->reasons, 0x45u) << "by the older name";
  EXPECT_EQ(state->heldByPower, 5ms);
  EXPECT_EQ(state->heldByThermal, 7ms);
  EXPECT_EQ(state->uncorrected, 3u);
  EXPECT_EQ(state->lastXid, 79u);
  EXPECT_EQ((*management)->stateOf("0000:17:00.0")->lastXid, 79u) << "it is remembered";
}

TEST(GpuManagement, AnUnknownDeviceIsAnErrorWithItsAddress) {
  const auto management = openGpuManagement(FALCON_FAKE_NVML);
  ASSERT_TRUE(management);
  const auto state = (*management)->stateOf("0000:99:00.0");
  ASSERT_FALSE(state);
  EXPECT_NE(state.error().message().find("0000:99:00.0: Not Found"), std::string::npos) << state.error().message();
}

TEST(GpuManagement, IsShutDownWithItsOwner) {
  const auto started = reinterpret_cast<int (*)()>(dlsym(dlopen(FALCON_FAKE_NVML, RTLD_NOW), "fakeNvmlStarted"));
  ASSERT_NE(started, nullptr);
  EXPECT_EQ(started(), 0);
  {
    const auto management = openGpuManagement(FALCON_FAKE_NVML);
    EXPECT_EQ(started(), 1);
  }
  EXPECT_EQ(started(), 0);
}

TEST(GpuManagement, AMissingLibraryIsAnError) {
  EXPECT_FALSE(openGpuManagement("/nowhere/libnvidia-ml.so.1"));
  EXPECT_FALSE(openGpuManagement(FALCON_FAKE_GPU)) << "a library that is no NVML";
}

TEST(DescribeReasons, NamesOnlyWhatMatters) {
  EXPECT_EQ(describeReasons(0), "");
  EXPECT_EQ(describeReasons(0x1 | 0x2 | 0x10 | 0x100), "");
  EXPECT_EQ(describeReasons(0x4 | 0x40), "power cap, thermal slowdown by hardware");
}

}  // namespace
}  // namespace falcon::validate
