#include "support/bundle.h"

#include <gtest/gtest.h>

namespace falcon::support {
namespace {

TEST(SettingsOfABundle, AreThoseOfNcclWithoutSecrets) {
  using namespace std::string_literals;
  const std::string environment =
      "HOME=/root\0NCCL_DEBUG=INFO\0NCCL_FALCON_SECRET=hidden\0NCCL_FALCON=1\0AWS_SECRET=x\0NCCL_IB_PKEY=0\0"
      "NCCL_EMPTY=\0NCCL_WORD\0NCCL_X=a=b\nc\0MY_NCCL_DEBUG=1\0NCCL_PLUGIN_TOKEN=t"s;
  const std::map<std::string, std::string> expected{
      {"NCCL_DEBUG", "INFO"}, {"NCCL_FALCON", "1"}, {"NCCL_EMPTY", ""}, {"NCCL_X", "a=b\nc"}};
  EXPECT_EQ(settingsIn(environment), expected);
  EXPECT_TRUE(settingsIn("").empty());
}

}  // namespace
}  // namespace falcon::support
