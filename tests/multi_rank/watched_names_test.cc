// Jobs with one name.
#include <gtest/gtest.h>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

std::size_t warningsIn(const std::string& errors) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = errors.find("two jobs with one name", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(TwoJobsWithOneName, AreToldAndWorkAndARestartIsNot) {
  WatchedJob first("sleep");
  const auto runs = [&] { return Said({"status", first.name}).output.find("4 of 4 ranks here") != std::string::npos; };
  ASSERT_TRUE(eventually(runs)) << first.job.errors();
  const auto command = falconCommand({"run", "-n", "4", "--", probe(), "none"});
  Started second(command, {{"NCCL_FALCON_JOB", first.name}});
  EXPECT_EQ(second.wait(), 0) << second.errors();
  EXPECT_EQ(warningsIn(second.errors()), 4u) << second.errors();
  EXPECT_NE(second.errors().find("set NCCL_FALCON_JOB"), std::string::npos);
  EXPECT_EQ(warningsIn(first.job.errors()), 0u);
  first.killRanks();  // the second one's files say nothing of them
  first.job.signal(SIGTERM);
  first.job.wait();
  Started third(command, {{"NCCL_FALCON_JOB", first.name}});
  EXPECT_EQ(third.wait(), 0) << third.errors();
  EXPECT_EQ(warningsIn(third.errors()), 0u) << third.errors();
}

TEST(RestartAfterACrash, IsNoSecondJob) {
  WatchedJob first("sleep");
  const auto runs = [&] { return Said({"status", first.name}).output.find("4 of 4 ranks here") != std::string::npos; };
  ASSERT_TRUE(eventually(runs)) << first.job.errors();
  first.killRanks();
  first.job.wait();
  Started again(falconCommand({"run", "-n", "4", "--", probe(), "none"}), {{"NCCL_FALCON_JOB", first.name}});
  EXPECT_EQ(again.wait(), 0) << again.errors();
  EXPECT_EQ(warningsIn(again.errors()), 0u) << again.errors();
}

}  // namespace
}  // namespace falcon::tests
