#include "control/stored_baseline.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace falcon::control {
namespace {

StoredBaseline example() {
  StoredBaseline baseline{.wallTime = 1700000000.5, .iterationSeconds = 0.125, .work = 4096.5, .calls = 42};
  baseline.groups = {{0, 1}, {1}};
  StoredBaseline::Member first{.rank = 0, .duration = 0.125, .outside = 0.0625};
  first.inside = {{0, 0.03125}};
  first.transfers = {{0, 1, 0, true, 1048576, 0.25, 0.5}, {0, 1, 1, false, 1048576, 0.25, 0}};
  StoredBaseline::Member second{.rank = 1, .duration = 0.125, .outside = 0.0625, .microBatches = 8};
  second.inside = {{0, 0.03125}, {1, 0.5}};
  baseline.members = {first, second};
  return baseline;
}

TEST(StoredBaseline, IsReadAsItWasWritten) {
  const auto read = decodeBaseline(encodeBaseline(example()));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, example());
}

TEST(StoredBaseline, IsRefusedWhereItIsNotWhole) {
  const std::string text = encodeBaseline(example());
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(decodeBaseline(text.substr(0, size))) << size;
  EXPECT_FALSE(decodeBaseline("falcon-baseline 4\nend\n"));
  for (const char* line : {"inside 0 1", "rank 0 1 1 1", "rank 0 1 1 1 1 1", "rank x 1 1 1 1", "job 1 -1 3 0",
                           "job 1 nan 3 0", "job 1 inf 3 0", "job 1 1 3", "job 1 1 3 -1", "group 0 y", "something 1"})
    EXPECT_FALSE(decodeBaseline(std::string("falcon-baseline 3\n") + line + "\nend\n")) << line;
  for (const char* line : {"inside 1 1", "transfer 1 0 0 s 1 1 1", "transfer 0 0 0 x 1 1 1", "transfer 0 -1 0 s 1 1 1"})
    EXPECT_FALSE(decodeBaseline(std::string("falcon-baseline 3\ngroup 0\nrank 0 1 1 1 1\n") + line + "\nend\n"))
        << line;
}

TEST(StoredBaseline, SurvivesDamage) {
  const std::string text = encodeBaseline(example());
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (unsigned i = 0; i <= random() % 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    const auto read = decodeBaseline(damaged);
    if (!read) continue;
    for (const auto& member : read->members) {
      EXPECT_GE(member.duration, 0);
      for (const auto& inside : member.inside) EXPECT_LT(inside.group, read->groups.size());
    }
  }
}

TEST(StoredBaseline, IsKeptInAFile) {
  std::string folder = "/tmp/falcon-baseline-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_FALSE(readBaseline(folder));
  EXPECT_TRUE(writeBaseline(folder, example()));
  const auto read = readBaseline(folder);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, example());
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 1u);
  // A pipe in its place must not hang the job.
  std::filesystem::remove(folder + "/baseline");
  ASSERT_EQ(mkfifo((folder + "/baseline").c_str(), 0600), 0);
  EXPECT_FALSE(readBaseline(folder));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(writeBaseline(folder, example()));
}

TEST(StoredBaseline, IsOfAJobByItsMembersAndNotByItsIds) {
  const auto jobWith = [](CommunicatorId id, double own) {
    JobView job;
    CommunicatorFormed formed{.id = id, .jobRanks = {0, 1}};
    job.handle(10, formed);
    for (Rank rank = 0; rank < 2; ++rank) {
      const ProcessId process = 10 + static_cast<ProcessId>(rank);
      job.handle(process, Introduce{.jobRank = rank});
      Sample sample{.seconds = own + 0.1, .outside = own};
      sample.communicators.push_back({id, 0.1, 3});
      job.handle(process, Samples{{sample}});
      auto& member = job.members()[process];
      member.healthy = JobView::means(member, 1);
      member.healthyTransfers = {{{id, 1 - rank, true, 4000, 0.2, 0.1}}, 2};
    }
    return job;
  };
  const StoredBaseline stored = storedFrom(jobWith(77, 0.2), 0.3, 0, 5, 1);
  JobView restarted = jobWith(99, 0.6);
  EXPECT_TRUE(isOfThisJob(stored, restarted, 0, 5));
  EXPECT_FALSE(isOfThisJob(stored, restarted, 0, 6));
  EXPECT_FALSE(isOfThisJob(stored, restarted, 100, 5)) << "it tells its work now";
  useStored(stored, restarted);
  const MemberView& member = restarted.members().at(11);
  EXPECT_NEAR(member.healthy->outside, 0.2, 1e-9);
  EXPECT_NEAR(member.healthy->inLibrary.at(99), 0.1, 1e-9);
  ASSERT_EQ(member.healthyTransfers.sums.size(), 1u);
  const TransferSum& sum = member.healthyTransfers.sums[0];
  const auto iterations = static_cast<double>(member.healthyTransfers.iterations);
  EXPECT_EQ(sum.id, 99u);
  EXPECT_NEAR(static_cast<double>(sum.bytes) / iterations, 2000, 1);
  EXPECT_NEAR(sum.moving / iterations, 0.1, 1e-9);

  JobView other = jobWith(99, 0.2);
  other.communicators()[99].jobRanks = {1, 0};
  EXPECT_FALSE(isOfThisJob(stored, other, 0, 5));
}

}  // namespace
}  // namespace falcon::control
