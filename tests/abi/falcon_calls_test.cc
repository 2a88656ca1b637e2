// The extension API: checked arguments, and the equal split with Falcon off and on.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

ncclFalconLayout_t layoutOf(int data, int pipeline, int tensor, int rank, int microBatches) {
  ncclFalconLayout_t layout{};
  layout.size = sizeof layout;
  layout.dataParallelSize = data;
  layout.pipelineParallelSize = pipeline;
  layout.tensorParallelSize = tensor;
  layout.tensorParallelIndex = rank % tensor;
  layout.pipelineParallelIndex = rank / tensor % pipeline;
  layout.dataParallelIndex = rank / tensor / pipeline;
  layout.microBatches = microBatches;
  return layout;
}

TEST(FalconLayout, WrongFieldsAreNamed) {
  const Communicator comm{alone()};
  const auto refused = [&](auto change, const char* word) {
    ncclFalconLayout_t layout = layoutOf(1, 1, 1, 0, 4);
    change(layout);
    EXPECT_EQ(ncclFalconRegisterLayout(comm.handle, &layout), ncclInvalidArgument) << word;
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(word), std::string::npos) << ncclGetLastError(nullptr);
  };
  refused([](auto& layout) { layout.size = 3; }, "size");
  refused([](auto& layout) { layout.dataParallelSize = 0; }, "dataParallelSize");
  refused([](auto& layout) { layout.pipelineParallelSize = 2; }, "pipelineParallelSize");
  refused([](auto& layout) { layout.tensorParallelIndex = 1; }, "tensorParallelIndex");
  refused([](auto& layout) { layout.dataParallelIndex = -1; }, "dataParallelIndex");
  refused([](auto& layout) { layout.microBatches = 0; }, "microBatches");
  EXPECT_EQ(ncclFalconRegisterLayout(comm.handle, nullptr), ncclInvalidArgument);
}

TEST(FalconPlan, NeedsALayoutAndASize) {
  const Communicator comm{alone()};
  ncclFalconPlan_t plan{};
  plan.size = sizeof plan;
  EXPECT_EQ(ncclFalconIterationBegin(comm.handle, 0, &plan), ncclInvalidUsage);
  const ncclFalconLayout_t layout = layoutOf(1, 1, 1, 0, 4);
  NCCL_OK(ncclFalconRegisterLayout(comm.handle, &layout));
  plan.size = 8;
  EXPECT_EQ(ncclFalconIterationBegin(comm.handle, 0, &plan), ncclInvalidArgument);
  EXPECT_EQ(ncclFalconIterationBegin(comm.handle, 0, nullptr), ncclInvalidArgument);
}

/// Six ranks as threads of this process: each gets the plan of its own place in the layout, iteration by iteration.
void expectEqualSplits() {
  for (const int microBatches : {3, 4, 8, 10}) {
    std::array<ncclFalconPlan_t, 6> plans{};
    withRanks(6, [&](int rank, ncclComm_t comm) {
      const ncclFalconLayout_t layout = layoutOf(3, 2, 1, rank, microBatches);
      NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
      float all = 0;  // so that all are there at once
      NCCL_OK(ncclAllReduce(&all, &all, 1, ncclFloat, ncclSum, comm, nullptr));
      plans[rank].size = sizeof plans[rank];
      for (const std::uint64_t iteration : {0, 1, 2}) NCCL_OK(ncclFalconIterationBegin(comm, iteration, &plans[rank]));
    });
    int next = 0;
    double weight = 0;
    for (int replica = 0; replica < 3; ++replica) {
      const ncclFalconPlan_t& plan = plans[2 * replica];
      EXPECT_EQ(plan.firstMicroBatch, next);
      EXPECT_EQ(plan.microBatches, plans[2 * replica + 1].microBatches) << "stages of one replica differ";
      EXPECT_GE(plan.microBatches, microBatches / 3);
      EXPECT_LE(plan.microBatches, microBatches / 3 + 1);
      EXPECT_DOUBLE_EQ(plan.gradientWeight, static_cast<double>(plan.microBatches) / microBatches);
      next += plan.microBatches;
      weight += plan.gradientWeight;
    }
    EXPECT_EQ(next, microBatches);
    EXPECT_DOUBLE_EQ(weight, 1);
  }
}

TEST(FalconPlan, SplitsEquallyWhenFalconIsOff) {
  inFreshChild({{"NCCL_FALCON", "0"}}, expectEqualSplits);
}

TEST(FalconPlan, RanksThatAreThreadsGetTheirOwnPlansWhenFalconIsOn) {
  const std::string path = testing::TempDir() + "falcon-plans-" + std::to_string(getpid());
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", path}, {"NCCL_FALCON_JOB", job.name}},
               expectEqualSplits);
  if (IsSkipped()) return;
  std::stringstream log;
  log << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_NE(log.str().find("this process has several ranks"), std::string::npos) << log.str();
}

}  // namespace
}  // namespace falcon::abi
