// The extension API with Falcon off: checked arguments, and the equal split.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

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

TEST(FalconPlan, SplitsEquallyWhenFalconIsOff) {
  setenv("NCCL_FALCON", "0", 1);
  for (const int microBatches : {3, 4, 8, 10}) {
    std::array<ncclFalconPlan_t, 6> plans{};
    withRanks(6, [&](int rank, ncclComm_t comm) {
      const ncclFalconLayout_t layout = layoutOf(3, 2, 1, rank, microBatches);
      NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
      plans[rank].size = sizeof plans[rank];
      NCCL_OK(ncclFalconIterationBegin(comm, 0, &plans[rank]));
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

}  // namespace
}  // namespace falcon::abi
