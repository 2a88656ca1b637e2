#include "gpu/device_presence.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace falcon::gpu {
namespace {

namespace fs = std::filesystem;

class DevicePresence : public testing::Test {
 protected:
  DevicePresence() { EXPECT_NE(mkdtemp(root_), nullptr); }
  ~DevicePresence() override { fs::remove_all(root_); }

  void make(const std::string& name) {
    const fs::path path = std::string(root_) + "/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  bool seen(const char* visible = nullptr) const { return devicesSeemPresent(root_, visible); }

  char root_[32] = "/tmp/falcon-devices-XXXXXX";
};

TEST_F(DevicePresence, AMachineWithoutAGpuHasNone) {
  EXPECT_FALSE(seen());
  for (const char* name : {"dev/null", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-caps/nvidia-cap1"}) make(name);
  fs::create_directories(std::string(root_) + "/proc/driver/nvidia/gpus");
  EXPECT_FALSE(seen()) << "a driver, and nothing to drive";
}

class EachWay : public DevicePresence, public testing::WithParamInterface<const char*> {};

TEST_P(EachWay, ToShowOneIsKnown) {
  make(GetParam());
  EXPECT_TRUE(seen());
  for (const char* some : {"0", "3,1", "GPU-8932f937", "MIG-GPU-8932f937/1/2"}) EXPECT_TRUE(seen(some)) << some;
  for (const char* none : {"", "-1", "NoDevFiles"}) EXPECT_FALSE(seen(none)) << none;
}

INSTANTIATE_TEST_SUITE_P(Kernels, EachWay,
                         testing::Values("proc/driver/nvidia/gpus/0000:07:00.0/information", "dev/nvidia0",
                                         "dev/nvidia15", "dev/dxg", "dev/nvhost-gpu"));

}  // namespace
}  // namespace falcon::gpu
