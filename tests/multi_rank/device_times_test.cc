// Who is waited for where all calls return when they have launched, and a thread waits for its device: only the device
// knows who came last.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "harness/spinning_vendor.h"
#include "multi_rank/spinning_job.h"

namespace falcon::test {
namespace {

constexpr int rankCount = 4, healthyIterations = 600, iterations = 1000;
constexpr std::chrono::milliseconds usualWork{4}, slowWork{12};

/// `slow` computes for longer after the healthy iterations.
std::string train(const TrapJob& job, const SharedBoard& board, int rank, int slow) {
  job.join(rank, rankCount);
  useSpinningVendor();
  Streams streams;
  void* const stream = streams.create();
  ncclComm_t comm = nullptr;
  if (auto wrong = makeCommunicator(board, 0, rank, rankCount, comm); !wrong.empty()) return wrong;
  const std::int64_t mine[] = {rank, 1, 2};
  std::int64_t sums[3] = {};
  for (int i = 0; i < iterations; ++i) {
    std::this_thread::sleep_for(rank == slow && i >= healthyIterations ? slowWork : usualWork);
    OR_SAY(ncclAllReduce(&mine[0], &sums[0], 1, ncclInt64, ncclSum, comm, asCuda(stream)));
    OR_SAY(ncclAllReduce(&mine[1], &sums[1], 2, ncclInt64, ncclSum, comm, asCuda(stream)));
    streams.synchronize(stream);
    if (sums[1] != rankCount) return "a sum is wrong";
  }
  OR_SAY(ncclCommDestroy(comm));
  return "";
}

/// The events of one kind, as they were told.
std::vector<nlohmann::json> told(const TrapJob& job, const std::string& kind) {
  std::vector<nlohmann::json> found;
  std::istringstream lines(job.events());
  for (std::string line; std::getline(lines, line);)
    if (auto event = nlohmann::json::parse(line); event.at("kind") == kind) found.push_back(std::move(event));
  return found;
}

/// Runs the job with a slow rank 2. What of that is told wrongly or not at all; "": nothing.
std::string wronglyTold() {
  const TrapJob job;
  const harness::SharedArena arena;
  const SharedBoard board;
  ForkedRanks forked(rankCount, [&](int rank) { return train(job, board, rank, 2); });
  EXPECT_TRUE(forked.allRight());
  const auto suspicions = told(job, "suspicion");
  if (told(job, "onset").empty() || suspicions.empty()) return "nothing is told: " + job.events();
  for (const auto& suspicion : suspicions) {
    const std::string text = suspicion.at("text");
    if (text.find("rank 2's own time") == std::string::npos) return text;
    for (const char* other : {"rank 0", "rank 1", "rank 3"})
      if (text.find(other) != std::string::npos) return text;
  }
  return "";
}

TEST(DeviceTimes, TellWhoIsWaitedForOnTheDevice) {
  // A busy machine slows others down too, now and then, and that is told: what is wrong is so each time.
  std::string wrong = "not run";
  for (int attempt = 0; attempt < 3 && !wrong.empty() && !HasFailure(); ++attempt) wrong = wronglyTold();
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace falcon::test
