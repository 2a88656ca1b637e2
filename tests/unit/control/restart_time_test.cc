#include "control/restart_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace falcon::control {
namespace {

double secondsOf(const std::string& folder, double wallTime) {
  return restartSeconds(std::vector{folder}, wallTime);
}

TEST(RestartTime, IsMeasuredOnceAndStays) {
  const std::string folder = testing::TempDir() + "falcon-restart-time-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  EXPECT_EQ(secondsOf(folder, 1000), 0) << "there was none";
  noteRestart(folder, 1000.5);
  EXPECT_DOUBLE_EQ(secondsOf(folder, 1010.5), 10);
  EXPECT_DOUBLE_EQ(secondsOf(folder, 1011), 10) << "another process";
  EXPECT_DOUBLE_EQ(secondsOf(folder, 9000), 10) << "an attempt after one that died by itself";
  noteRestart(folder, 9000);
  EXPECT_EQ(secondsOf(folder, 8000), 0) << "the clock went back";
  EXPECT_DOUBLE_EQ(secondsOf(folder, 9004), 4);
  std::ofstream(folder + "/restart") << "nonsense";
  EXPECT_EQ(secondsOf(folder, 9004), 0);
  EXPECT_EQ(secondsOf("", 9004), 0);
  std::filesystem::remove_all(folder);
}

TEST(RestartTime, IsThatOfAnEarlierAttemptUnlessHoursPassed) {
  const std::string folder = testing::TempDir() + "falcon-restart-time-" + std::to_string(getpid());
  const std::vector<std::string> attempts{folder + ".2", folder + ".1", folder + ".0"};
  for (const std::string& each : attempts) std::filesystem::create_directories(each);
  noteRestart(attempts[1], 1000);
  EXPECT_DOUBLE_EQ(restartSeconds(attempts, 1007), 7);
  EXPECT_DOUBLE_EQ(restartSeconds(attempts, 2000), 7) << "another process";
  noteRestart(attempts[0], 3000);
  EXPECT_EQ(restartSeconds(std::vector{attempts[0]}, 3000 + 36'000), 0) << "started again by hand, ten hours later";
  for (const std::string& each : attempts) std::filesystem::remove_all(each);
}

}  // namespace
}  // namespace falcon::control
