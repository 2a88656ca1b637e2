// The extension API: registered state, checkpoints, restores and restarts, with Falcon off and on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A folder that goes with the object.
struct Folder {
  const std::string path = testing::TempDir() + "falcon-checkpoints-" + std::to_string(getpid());
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// 2 replicas of 2 stages.
ncclFalconLayout_t layoutOf(int rank) {
  return {sizeof(ncclFalconLayout_t), 2, 2, 1, rank / 2, rank % 2, 0, 4};
}

/// What a rank has: `shared` is its stage's, `own` is its own.
struct State {
  std::vector<int> shared = std::vector<int>(2000), own = std::vector<int>(5);
  void set(int iteration, int rank) {
    std::fill(shared.begin(), shared.end(), 100 * iteration + rank % 2);
    std::fill(own.begin(), own.end(), 100 * iteration + rank);
  }
  void join(ncclComm_t comm) {
    NCCL_OK(ncclFalconRegisterState(comm, "weights", shared.data(), shared.size() * sizeof(int),
                                    NCCL_FALCON_STATE_REPLICATED));
    NCCL_OK(ncclFalconRegisterState(comm, "moments", own.data(), own.size() * sizeof(int), 0));
  }
  bool operator==(const State&) const = default;
};

void keepAndComeBack(const std::string& folder) {
  withRanks(4, [&](int rank, ncclComm_t comm) {
    const auto layout = layoutOf(rank);
    NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
    State state;
    state.join(comm);
    std::uint64_t iteration = 0;
    NCCL_OK(ncclFalconRestore(comm, folder.c_str(), &iteration));
    EXPECT_EQ(iteration, NCCL_FALCON_NO_CHECKPOINT);
    for (const int each : {1, 2}) {
      unsigned wanted = 77;
      NCCL_OK(ncclFalconWanted(comm, static_cast<std::uint64_t>(each), &wanted));
      EXPECT_EQ(wanted, 0u);
      state.set(each, rank);
      NCCL_OK(ncclFalconCheckpoint(comm, static_cast<std::uint64_t>(each), folder.c_str()));
      state.set(99, rank);
    }
    NCCL_OK(ncclFalconCheckpointSynchronize(comm));
    float all = 0;  // everybody's is on the storage
    NCCL_OK(ncclAllReduce(&all, &all, 1, ncclFloat, ncclSum, comm, nullptr));
  });
  for (const char* part : {"stage-0-shard-0", "stage-1-shard-0", "rank-0", "rank-3"})
    EXPECT_TRUE(fs::exists(folder + "/iteration-000000000002/" + part + ".manifest")) << part;
  // Another job of the same kind.
  withRanks(4, [&](int rank, ncclComm_t comm) {
    const auto layout = layoutOf(rank);
    NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
    State state, expected;
    expected.set(2, rank);
    state.join(comm);
    std::uint64_t iteration = 0;
    NCCL_OK(ncclFalconRestore(comm, folder.c_str(), &iteration));
    EXPECT_EQ(iteration, 2u);
    EXPECT_EQ(state, expected) << rank;
    // It is a communicator like any other afterwards.
    int sum = rank;
    NCCL_OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, nullptr));
    EXPECT_EQ(sum, 6);
  });
}

TEST(FalconCheckpoint, ComesBackWhetherFalconIsOnOrOff) {
  for (const char* falcon : {"0", "1"}) {
    const Folder folder;
    const NamedJob job;
    inFreshChild({{"NCCL_FALCON", falcon}, {"NCCL_FALCON_JOB", job.name}}, [&] { keepAndComeBack(folder.path); });
  }
}

TEST(FalconCheckpoint, WrongArgumentsAreNamed) {
  inFreshChild({{"NCCL_FALCON", "0"}}, [] {
    const Communicator comm{alone()};
    int value = 0;
    const auto refused = [](ncclResult_t result, ncclResult_t expected, const char* word) {
      EXPECT_EQ(result, expected) << word;
      EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(word));
    };
    refused(ncclFalconRegisterState(comm.handle, nullptr, &value, 4, 0), ncclInvalidArgument, "name is NULL");
    refused(ncclFalconRegisterState(comm.handle, "a b", &value, 4, 0), ncclInvalidArgument, "visible ASCII");
    refused(ncclFalconRegisterState(comm.handle, "a", nullptr, 4, 0), ncclInvalidArgument, "nothing to keep");
    refused(ncclFalconRegisterState(comm.handle, "a", &value, 0, 0), ncclInvalidArgument, "0 bytes");
    refused(ncclFalconRegisterState(comm.handle, "a", &value, 4, 6), ncclInvalidArgument, "flags are 0x6");
    refused(ncclFalconUnregisterState(comm.handle, "a"), ncclInvalidArgument, "no state named a");
    refused(ncclFalconCheckpoint(comm.handle, 1, "/tmp"), ncclInvalidUsage, "no state is registered");
    EXPECT_EQ(ncclFalconRegisterState(comm.handle, "a", &value, 4, 0), ncclSuccess);
    refused(ncclFalconRegisterState(comm.handle, "a", &value, 4, 0), ncclInvalidArgument, "registered already");
    refused(ncclFalconCheckpoint(comm.handle, 1, nullptr), ncclInvalidUsage, "NCCL_FALCON_CHECKPOINT_DIR");
    refused(ncclFalconRestore(comm.handle, "/tmp", nullptr), ncclInvalidArgument, "iteration");
    int code = 0;
    refused(ncclFalconRestart(comm.handle, &code), ncclInvalidUsage, "NCCL_FALCON_RESTART_FILE");
    refused(ncclFalconWanted(comm.handle, 0, nullptr), ncclInvalidArgument, "wanted");
    EXPECT_EQ(ncclFalconWanted(nullptr, 0, nullptr), ncclInvalidArgument);
  });
}

TEST(FalconCheckpoint, WhatCannotBeKeptIsTold) {
  inFreshChild({{"NCCL_FALCON", "0"}}, [] {
    const Communicator comm{alone()};
    int value = 0;
    NCCL_OK(ncclFalconRegisterState(comm.handle, "a", &value, 4, 0));
    NCCL_OK(ncclFalconCheckpoint(comm.handle, 1, "/proc/nowhere"));
    EXPECT_EQ(ncclFalconCheckpointSynchronize(comm.handle), ncclSystemError);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("/proc/nowhere"));
    EXPECT_EQ(ncclFalconCheckpointSynchronize(comm.handle), ncclSuccess) << "told once";
  });
}

TEST(FalconRestart, LeavesARequestWithTheNewestCheckpoint) {
  for (const char* falcon : {"0", "1"}) {
    const Folder folder;
    const NamedJob job;
    inFreshChild({{"NCCL_FALCON", falcon},
                  {"NCCL_FALCON_JOB", job.name},
                  {"NCCL_FALCON_CHECKPOINT_DIR", folder.path},
                  {"NCCL_FALCON_RESTART_CODE", "75"}},
                 [&] {
                   withRanks(3, [&](int rank, ncclComm_t comm) {
                     NCCL_OK(ncclFalconRegisterState(comm, "a", &rank, sizeof rank, 0));
                     NCCL_OK(ncclFalconCheckpoint(comm, 40, nullptr));
                     int code = 0;
                     NCCL_OK(ncclFalconRestart(comm, &code));
                     EXPECT_EQ(code, 75);
                   });
                   EXPECT_EQ(contentOf(folder.path + "/restart.json"),
                             R"({"v":1,"job":")" + job.name + R"(","leave_out":[],"checkpoint":{"folder":")" +
                                 folder.path + "\",\"iteration\":40}}\n");
                 });
  }
}

}  // namespace
}  // namespace falcon::abi
