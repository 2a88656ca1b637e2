// `falcon run --restarts N --spares K`: who is started again, how often, and in whose place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multi_rank/run_harness.h"
#include "run/options.h"
#include "run/placement.h"
#include "run/restart_policy.h"

namespace falcon::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RestartPolicy, ASpareTakesThePlaceOfWhomTheRequestNames) {
  RestartPolicy policy(4, 3, 2);
  EXPECT_THAT(policy.places(), ElementsAre(0, 1, 2, 3));
  const auto first = policy.after({143, false, RestartRequest{{2}, "the checkpoint of iteration 40"}});
  EXPECT_TRUE(first.again);
  EXPECT_EQ(first.text,
            "the job asked to be restarted (code 143): restart 1 of 3, from the checkpoint of iteration 40; spare 0 "
            "takes the place of rank 2");
  EXPECT_THAT(policy.places(), ElementsAre(0, 1, 4, 3));
  // The spare is slow, too.
  EXPECT_TRUE(policy.after({143, false, RestartRequest{{2}, ""}}).again);
  EXPECT_THAT(policy.places(), ElementsAre(0, 1, 5, 3));
  const auto third = policy.after({143, false, RestartRequest{{0}, ""}});
  EXPECT_TRUE(third.again);
  EXPECT_THAT(third.text, HasSubstr("rank 0 keeps its place: no spare is left of 2"));
  EXPECT_THAT(policy.places(), ElementsAre(0, 1, 5, 3));
  const auto fourth = policy.after({143, false, RestartRequest{}});
  EXPECT_FALSE(fourth.again);
  EXPECT_THAT(fourth.text, HasSubstr("restarted 3 times already"));
}

TEST(RestartPolicy, WhoDiesByItselfComesBackInItsPlace) {
  RestartPolicy policy(2, 1, 1);
  const auto next = policy.after({1, false, std::nullopt});
  EXPECT_TRUE(next.again);
  EXPECT_EQ(next.text, "the job ended by itself (code 1): restart 1 of 1, all in their places");
  EXPECT_THAT(policy.places(), ElementsAre(0, 1));
  EXPECT_FALSE(policy.after({1, false, std::nullopt}).again);
}

TEST(RestartPolicy, AnEndThatWasWantedIsTheEnd) {
  RestartPolicy policy(2, 5, 0);
  EXPECT_FALSE(policy.after({0, false, RestartRequest{}}).again) << "it succeeded";
  EXPECT_FALSE(policy.after({143, true, std::nullopt}).again) << "somebody asked for it";
  EXPECT_FALSE(RestartPolicy(2, 0, 0).after({1, false, std::nullopt}).again);
  EXPECT_EQ(RestartPolicy(2, 0, 0).after({1, false, std::nullopt}).text, "");
}

TEST(RestartRequest, IsReadFieldByField) {
  const auto good = parseRestartRequest(
      R"({"v":1,"job":"j","leave_out":[{"rank":3,"host":"h","device":0}],"checkpoint":{"folder":"f","iteration":40}})");
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_THAT(good->leaveOut, ElementsAre(3));
  EXPECT_EQ(good->checkpoint, "the checkpoint of iteration 40");
  const auto none = parseRestartRequest(R"({"v":1,"job":"","leave_out":[],"checkpoint":null})");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->checkpoint, "");
  for (const char* bad : {"", "[]", "{}", R"({"v":2,"leave_out":[]})", R"({"v":1})", R"({"v":1,"leave_out":[3]})",
                          R"({"v":1,"leave_out":[{"rank":-1}]})", R"({"v":1,"leave_out":[{"rank":"3"}]})",
                          R"({"v":1,"leave_out":[],"checkpoint":{}})"})
    EXPECT_FALSE(parseRestartRequest(bad)) << bad;
}

TEST(Places, OfSparesAreNodesOfTheirOwn) {
  RunOptions options;
  options.ranks = 5;
  options.nodes = 2;
  options.spares = 2;
  const auto all = allPlaces(options);
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[5].node, 2);
  EXPECT_EQ(all[6].node, 3);
  const std::vector<int> places{0, 6, 2, 3, 4};
  const auto placed = placeRanks(options, {0, 1}, places);
  EXPECT_EQ(placed[1].place, 6);
  EXPECT_EQ(placed[1].node, 3);
  EXPECT_EQ(placed[1].localSize, 1);
  EXPECT_EQ(placed[0].localSize, 2);
  EXPECT_EQ(placed[2].localRank, 1);
  EXPECT_EQ(addressOf(placed[1].place), "10.211.0.16");
}

TEST(RunOptions, SayWhatRestartsAndSparesNeed) {
  RunOptions options;
  options.ranks = 2;
  options.program = {"true"};
  options.spares = 1;
  EXPECT_THAT(*whyNot(options), HasSubstr("add --restarts 1"));
  options.restarts = 1;
  EXPECT_THAT(*whyNot(options), HasSubstr("--cgroups"));
  options.cgroups = UseCgroups::must;
  EXPECT_FALSE(whyNot(options));
  options.restarts = -1;
  EXPECT_THAT(*whyNot(options), HasSubstr("--restarts -1"));
  options.restarts = 1;
  options.spares = 5000;
  EXPECT_THAT(*whyNot(options), HasSubstr("--spares 5000"));
}

}  // namespace
}  // namespace falcon::tools

namespace falcon::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> shell(const std::string& script, std::vector<std::string> more) {
  std::vector<std::string> words{"run", "-n", "2"};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", script});
  return falconCommand(words);
}

TEST(RunRestarts, AJobThatDiesByItselfIsStartedAgainSoManyTimes) {
  Started job(
      shell("echo attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; exit 7", {"--restarts", "2"}));
  EXPECT_EQ(job.wait(), 7);
  for (const char* line : {"[0] attempt 0 of 2\n", "[1] attempt 1 of 2\n", "[1] attempt 2 of 2\n"})
    EXPECT_THAT(job.output(), HasSubstr(line));
  EXPECT_THAT(job.errors(), HasSubstr("the job ended by itself (code 7): restart 1 of 2, all in their places\n"));
  EXPECT_THAT(job.errors(), HasSubstr("the job ended by itself (code 7), and was restarted 2 times already\n"));
}

TEST(RunRestarts, OneThatSucceedsTheSecondTimeSucceeds) {
  Started job(shell("[ $TORCHELASTIC_RESTART_COUNT = 1 ]", {"--restarts", "5"}));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.errors(), Not(HasSubstr("restart 2")));
}

TEST(RunRestarts, WhatCannotBeExecutedIsNotTriedAgain) {
  Started job(falconCommand({"run", "-n", "1", "--restarts", "3", "--", "/no/such/program"}));
  EXPECT_EQ(job.wait(), 127);
  EXPECT_THAT(job.errors(), Not(HasSubstr("restart 1")));
}

TEST(RunRestarts, ASignalIsAnEnd) {
  Started job(shell("echo there; sleep 60", {"--restarts", "3"}));
  ASSERT_TRUE(eventually([&] { return linesOf(job.output()).size() == 2; }));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.errors(), Not(HasSubstr("restart 1")));
}

TEST(RunRestarts, TheRequestsRankMovesToTheSparesPlace) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  const TemporaryFolder folder;
  // Each rank tells its interface and its cgroup; the first time the job asks to go on without rank 1.
  const std::string script =
      "echo on $NCCL_SOCKET_IFNAME in $(grep -o 'falcon-.*' /proc/self/cgroup | head -n 1); "
      "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; "
      "echo '{\"v\":1,\"job\":\"\",\"leave_out\":[{\"rank\":1,\"host\":\"h\",\"device\":0}],\"checkpoint\":null}' "
      "> $NCCL_FALCON_RESTART_FILE.$RANK; mv $NCCL_FALCON_RESTART_FILE.$RANK $NCCL_FALCON_RESTART_FILE; exit 143";
  Started job(shell(
      script, {"--restarts", "1", "--spares", "1", "--nodes", "2", "--cgroups", "--describe", folder.file("job")}));
  EXPECT_EQ(job.wait(), 0) << job.errors();
  EXPECT_THAT(job.errors(), HasSubstr("the job asked to be restarted (code 143): restart 1 of 1; spare 0 takes the "
                                      "place of rank 1\n"));
  for (const char* line : {"[0] on =rank0 in falcon-", "[1] on =rank1 in falcon-", "[1] on =rank2 in falcon-"})
    EXPECT_THAT(job.output(), HasSubstr(line));
  const auto described = waitForDescription(folder.file("job"));
  EXPECT_EQ(described.ranks.at(1).interface, "rank2");
  EXPECT_EQ(described.ranks.at(1).address, "10.211.0.12");
  EXPECT_EQ(described.ranks.at(1).node, 2);
  EXPECT_EQ(described.ranks.at(0).interface, "rank0");
}

}  // namespace
}  // namespace falcon::tests
