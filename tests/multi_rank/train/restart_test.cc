// The trainer killed and started again: it goes on from its newest checkpoint, and its losses are as if nothing had
// been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "train_job.h"

namespace falcon::train_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;

std::vector<std::string> flags(const ScratchFolder& folder, int iterations, const char* log, bool keeps) {
  std::vector<std::string> words{"--layers",
                                 "4",
                                 "--hidden",
                                 "32",
                                 "--heads",
                                 "4",
                                 "--sequence",
                                 "16",
                                 "--vocab",
                                 "32",
                                 "--micro-batches",
                                 "8",
                                 "--micro-batch-size",
                                 "2",
                                 "--dp",
                                 "2",
                                 "--pp",
                                 "2",
                                 "--iterations",
                                 std::to_string(iterations),
                                 "--log",
                                 folder.file(log),
                                 "--quiet"};
  if (keeps) words.insert(words.end(), {"--checkpoints", folder.file("checkpoints"), "--checkpoint-every", "5"});
  return words;
}

TEST(RestartedTrainer, GoesOnWithTheSameLossCurve) {
  const ScratchFolder folder;
  TrainJob undisturbed(4, flags(folder, 30, "whole", false), {{"NCCL_FALCON", "0"}});
  EXPECT_THAT(undisturbed.wait(), Each(0)) << undisturbed.errors(0);
  {
    // It is not meant to end by itself: killed in the middle of an iteration, behind its third checkpoint or later.
    TrainJob killed(4, flags(folder, 1'000'000, "parts", true), {{"NCCL_FALCON", "0"}});
    for (int tries = 0; tries < 2400 && readLog(folder.file("parts"), Growth::grows).size() < 17; ++tries)
      std::this_thread::sleep_for(50ms);
    killed.kill(2);
    killed.wait();
  }
  const auto before = readLog(folder.file("parts"));
  ASSERT_GE(before.size(), 17u);
  const auto last = static_cast<int>(before.back().iteration);
  const int wanted = std::max(30, last + 5);
  TrainJob again(4, flags(folder, wanted, "parts", true), {{"NCCL_FALCON", "0"}});
  EXPECT_THAT(again.wait(), Each(0)) << again.errors(0);
  const auto all = readLog(folder.file("parts"));
  ASSERT_GT(all.size(), before.size());
  const std::uint64_t first = all[before.size()].iteration;
  EXPECT_EQ(first % 5, 0u) << "of a checkpoint";
  EXPECT_GE(first, 10u);
  EXPECT_EQ(all.back().iteration, static_cast<std::uint64_t>(wanted) - 1);
  const auto whole = readLog(folder.file("whole"));
  for (const LoggedIteration& each : all)
    if (each.iteration < whole.size()) {
      EXPECT_NEAR(each.loss, whole[each.iteration].loss, 1e-5) << each.iteration;
    }
}

TEST(RestartedTrainer, ThatHasAllItsIterationsDoesNothing) {
  const ScratchFolder folder;
  for (int run = 0; run < 2; ++run) {
    TrainJob job(4, flags(folder, 10, "log", true), {{"NCCL_FALCON", "0"}});
    EXPECT_THAT(job.wait(), Each(0)) << job.errors(0);
    EXPECT_EQ(readLog(folder.file("log")).size(), 10u);
  }
}

}  // namespace
}  // namespace falcon::train_test
