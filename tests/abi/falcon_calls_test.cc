// The extension API: checked arguments, and the equal split with Falcon off and on.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "abi/ranks.h"
#include "instrument/range_log.h"

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
  refused([](auto& layout) { layout.microBatchMultiple = 3; }, "no multiple of microBatchMultiple, 3");
  refused([](auto& layout) { layout.microBatchMultiple = -1; }, "microBatchMultiple is -1");
  refused([](auto& layout) { layout.leastMicroBatches = 3, layout.mostMicroBatches = 2; }, "leastMicroBatches is 3");
  refused([](auto& layout) { layout.rail = -1; }, "rail is -1");
  EXPECT_EQ(ncclFalconRegisterLayout(comm.handle, nullptr), ncclInvalidArgument);
}

// A program that was built with version 8 passes 40 bytes: what lies behind them is not read.
TEST(FalconLayout, OfEarlierVersionsKeepsWorking) {
  const Communicator comm{alone()};
  ncclFalconLayout_t layout = layoutOf(1, 1, 1, 0, 4);
  layout.size = 40;
  layout.unused = layout.microBatchMultiple = layout.rail = -7;
  NCCL_OK(ncclFalconRegisterLayout(comm.handle, &layout));
  layout.size = 39;
  EXPECT_EQ(ncclFalconRegisterLayout(comm.handle, &layout), ncclInvalidArgument);
  // Of a later version: what this one does not know is left out.
  struct Later {
    ncclFalconLayout_t layout;
    int more = -1;
  } later{layoutOf(1, 1, 1, 0, 4)};
  later.layout.size = sizeof later;
  NCCL_OK(ncclFalconRegisterLayout(comm.handle, &later.layout));
}

// An interleaved pipeline's share is a multiple of its stages, without any plan of ours.
TEST(FalconPlan, SharesOutMultiples) {
  std::array<int, 3> shares{};
  withRanks(3, [&](int rank, ncclComm_t comm) {
    ncclFalconLayout_t layout = layoutOf(3, 1, 1, rank, 16);
    layout.microBatchMultiple = 4;
    NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
    ncclFalconPlan_t plan{};
    plan.size = sizeof plan;
    NCCL_OK(ncclFalconIterationBegin(comm, 0, &plan));
    shares[static_cast<std::size_t>(rank)] = plan.microBatches;
  });
  EXPECT_EQ(shares, (std::array{8, 4, 4}));
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

/// The ranges' log of the only rank of a job.
std::optional<instrument::RangeLogView> rangesIn(const std::string& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".ranges") continue;
    auto view = instrument::readRangeLog(file.path(), 100);
    if (view) return *view;
  }
  return std::nullopt;
}

TEST(FalconRanges, AreRecordedByThreadAndNest) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    EXPECT_EQ(ncclFalconRangeEnd(), ncclSuccess) << "no job yet: nothing is known of what is open";
    EXPECT_EQ(ncclFalconRangeBegin(nullptr), ncclInvalidArgument);
    const Communicator comm{alone()};
    EXPECT_EQ(ncclFalconRangeEnd(), ncclInvalidUsage);
    NCCL_OK(ncclFalconRangeBegin("outer"));
    NCCL_OK(ncclFalconRangeBegin("inner"));
    const auto open = rangesIn(job.folder())->open;
    ASSERT_EQ(open.size(), 2u);
    EXPECT_EQ(open[0].name, "outer");
    EXPECT_EQ(open[1].name, "inner");
    EXPECT_EQ(open[1].depth, 1u);
    EXPECT_EQ(open[1].thread, static_cast<std::uint32_t>(gettid()));
    EXPECT_LE(open[0].begin, open[1].begin);
    std::thread([] {
      EXPECT_EQ(ncclFalconRangeEnd(), ncclInvalidUsage) << "another thread's ranges";
      EXPECT_EQ(ncclFalconRangeBegin("other thread"), ncclSuccess);
      EXPECT_EQ(ncclFalconRangeEnd(), ncclSuccess);
    }).join();
    NCCL_OK(ncclFalconRangeEnd());
    NCCL_OK(ncclFalconRangeEnd());
    EXPECT_EQ(ncclFalconRangeEnd(), ncclInvalidUsage);
    for (int i = 0; i < 100; ++i) NCCL_OK(ncclFalconRangeBegin("deep"));
    for (int i = 0; i < 100; ++i) NCCL_OK(ncclFalconRangeEnd());
    EXPECT_EQ(ncclFalconRangeEnd(), ncclInvalidUsage);

    const auto view = rangesIn(job.folder());
    ASSERT_TRUE(view);
    EXPECT_EQ(view->ranges, 3u + 32u);
    EXPECT_TRUE(view->open.empty());
    ASSERT_GE(view->latest.size(), 3u);
    const auto text = [&](std::size_t i) { return view->names.at(view->latest[i].name).text; };
    EXPECT_EQ(text(0), "other thread");
    EXPECT_EQ(text(1), "inner");
    EXPECT_EQ(text(2), "outer");
    EXPECT_EQ(view->latest[1].depth, 1u);
    EXPECT_EQ(view->latest[2].depth, 0u);
    EXPECT_LE(view->latest[2].begin, view->latest[1].begin);
    EXPECT_LE(view->latest[1].begin, view->latest[1].end);
    EXPECT_LE(view->latest[1].end, view->latest[2].end);
  });
}

TEST(FalconRanges, OutliveTheirJobAndBelongToTheNext) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    {
      const Communicator first{alone()};
      NCCL_OK(ncclFalconRangeBegin("left open"));
    }
    NCCL_OK(ncclFalconRangeEnd());
    NCCL_OK(ncclFalconRangeBegin("between"));
    const Communicator second{alone()};
    EXPECT_EQ(ncclFalconRangeEnd(), ncclInvalidUsage) << "what was open is of the job before";
    NCCL_OK(ncclFalconRangeBegin("second"));
    NCCL_OK(ncclFalconRangeEnd());
    const auto view = rangesIn(job.folder());
    ASSERT_TRUE(view);
    EXPECT_EQ(view->ranges, 1u);
  });
}

TEST(FalconRanges, OfAForkedChildAreNotTheParents) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    const Communicator comm{alone()};
    NCCL_OK(ncclFalconRangeBegin("parent's"));
    const pid_t child = fork();
    if (child == 0) {
      const bool silent = ncclFalconRangeEnd() == ncclSuccess && ncclFalconRangeBegin("child's") == ncclSuccess &&
                          ncclFalconRangeEnd() == ncclSuccess;
      _exit(silent ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    NCCL_OK(ncclFalconRangeEnd());
    const auto view = rangesIn(job.folder());
    ASSERT_TRUE(view);
    EXPECT_EQ(view->ranges, 1u);
  });
}

TEST(FalconRanges, AreNothingWhileFalconIsOff) {
  inFreshChild({{"NCCL_FALCON", "0"}}, [] {
    const Communicator comm{alone()};
    EXPECT_EQ(ncclFalconRangeEnd(), ncclSuccess);
    EXPECT_EQ(ncclFalconRangeBegin("anything"), ncclSuccess);
    EXPECT_EQ(ncclFalconRangeEnd(), ncclSuccess);
    EXPECT_EQ(ncclFalconRangeBegin(nullptr), ncclInvalidArgument);
  });
}

TEST(FalconIterationWork, IsAnAmountAndMayBeToldAtAnyTime) {
  for (const char* falcon : {"0", "1"})
    inFreshChild({{"NCCL_FALCON", falcon}}, [] {
      EXPECT_EQ(ncclFalconIterationWork(4096), ncclSuccess) << "before the first communicator";
      const Communicator comm{alone()};
      EXPECT_EQ(ncclFalconIterationWork(0.5), ncclSuccess);
      for (const double none : {0.0, -1.0, std::nan(""), double{INFINITY}})
        EXPECT_EQ(ncclFalconIterationWork(none), ncclInvalidArgument) << none;
    });
}

}  // namespace
}  // namespace falcon::abi
