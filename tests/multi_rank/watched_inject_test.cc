// `falcon inject --job`: victims that their call logs describe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

TEST(InjectJob, TakesTheQuotaOfARankInACgroupOfItsOwn) {
  if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  WatchedJob job("until", {folder.file("end")}, {"--cgroups"});
  const auto runs = [&] {
    const Said said({"status", job.name, "--json"});
    return said.json.is_array() && said.json.at(0).at("ranks").size() == 4;
  };
  ASSERT_TRUE(eventually(runs)) << job.job.errors();
  const Said said({"inject", "slow-rank", "--job", job.name, "--rank", "1", "--quota", "0.01", "--for", "2", "--json"});
  ASSERT_TRUE(said.json.is_object()) << said.errors;
  EXPECT_EQ(said.json.at("stops"), 0);
  EXPECT_GT(said.json.at("throttled_periods"), 0);
}

}  // namespace
}  // namespace falcon::tests
