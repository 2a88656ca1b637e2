#include "base/config_file.h"

#include <gtest/gtest.h>

#include "unit/base/environment.h"

namespace falcon {
namespace {

TEST(ConfigFile, IsLinesOfNamesAndValues) {
  const auto settings =
      parseConfigFile("# comment\nNCCL_A=1\n  NCCL_B = two words \r\n\nNCCL_C=\n=3\nno equals\nNCCL_D=x=y\nNCCL_A=4");
  EXPECT_EQ(settings, (std::map<std::string, std::string>{
                          {"NCCL_A", "4"}, {"NCCL_B", "two words"}, {"NCCL_C", ""}, {"NCCL_D", "x=y"}}));
  EXPECT_TRUE(parseConfigFile("").empty());
  EXPECT_TRUE(parseConfigFile("\n\n#").empty());
}

TEST(Configured, PrefersTheEnvironment) {
  const Variable variable("FALCON_TEST_SETTING", "here");
  EXPECT_EQ(configured("FALCON_TEST_SETTING"), "here");
  const Variable gone("FALCON_TEST_SETTING", nullptr);
  EXPECT_EQ(configured("FALCON_TEST_SETTING"), std::nullopt);
}

}  // namespace
}  // namespace falcon
