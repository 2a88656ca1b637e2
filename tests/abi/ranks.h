// Ranks as threads, and children in which the library is fresh.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "nccl_falcon.h"

namespace falcon::abi {

#define NCCL_OK(call) ASSERT_EQ(ncclSuccess, call) << ncclGetLastError(nullptr)

inline constexpr cudaStream_t noStream = nullptr;

/// A communicator that is destroyed at the end.
struct Communicator {
  ncclComm_t handle = nullptr;
  ~Communicator() {
    // NULL is fine: destroying nothing succeeds.
    EXPECT_EQ(ncclSuccess, ncclCommDestroy(handle));
  }
};

/// A job's name for NCCL_FALCON_JOB; what such a job leaves in shared memory goes with it.
struct NamedJob {
  const std::string name = "falcon-test-" + std::to_string(getpid());
  std::string folder() const { return "/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/" + name; }
  NamedJob() { std::filesystem::remove_all(folder()); }  // of an earlier process of this number that was killed
  ~NamedJob() { std::filesystem::remove_all(folder()); }
};

/// first, first + 1, ...
inline std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// A communicator of one rank.
inline ncclComm_t alone() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclSuccess, ncclGetUniqueId(&id)) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclSuccess, ncclCommInitRank(&comm, 1, id, 0)) << ncclGetLastError(nullptr);
  return comm;
}

/// Runs `body(rank, comm)` on `size` threads that share a communicator. A body that destroys its handle nulls it.
inline void withRanks(int size, const std::function<void(int, ncclComm_t&)>& body) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Communicator comm;
      NCCL_OK(ncclCommInitRank(&comm.handle, size, id, rank));
      body(rank, comm.handle);
    });
  for (auto& thread : threads) thread.join();
}

/// What becomes of a nonblocking call.
inline ncclResult_t outcomeOf(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &state));
    std::this_thread::yield();
  }
  return state;
}

/// Runs `body` in a forked child whose library has not been used, with these environment settings. Its failures are
/// printed there, and fail here.
inline void inFreshChild(const std::vector<std::pair<const char*, std::string>>& environment,
                         const std::function<void()>& body) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child of a process that has threads";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const auto& [name, value] : environment) setenv(name, value.c_str(), 1);
    body();
    fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace falcon::abi
