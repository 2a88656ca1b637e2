#include "control/restart_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace falcon::control {
namespace {

TEST(RestartTime, IsMeasuredOnceAndStays) {
  const std::string folder = testing::TempDir() + "falcon-restart-time-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  EXPECT_EQ(restartSeconds(folder, 1000), 0) << "there was none";
  noteRestart(folder, 1000.5);
  EXPECT_DOUBLE_EQ(restartSeconds(folder, 1010.5), 10);
  EXPECT_DOUBLE_EQ(restartSeconds(folder, 1011), 10) << "another process";
  EXPECT_DOUBLE_EQ(restartSeconds(folder, 9000), 10) << "an attempt after one that died by itself";
  noteRestart(folder, 9000);
  EXPECT_EQ(restartSeconds(folder, 8000), 0) << "the clock went back";
  EXPECT_DOUBLE_EQ(restartSeconds(folder, 9004), 4);
  std::ofstream(folder + "/restart") << "nonsense";
  EXPECT_EQ(restartSeconds(folder, 9004), 0);
  EXPECT_EQ(restartSeconds("", 9004), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace falcon::control
