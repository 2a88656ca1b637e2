// Ranks under Falcon, for tests that hold them.
#pragma once

#include <filesystem>
#include <string>

#include "harness/api_rank.h"

namespace falcon::test {

/// Sets a rank's environment; what the job leaves in shared memory goes with it.
class TrapJob {
 public:
  TrapJob() : name_("falcon-trap-" + std::to_string(getpid()) + "-" + std::to_string(++made())) {}
  ~TrapJob() { std::filesystem::remove_all(folder()); }
  TrapJob(const TrapJob&) = delete;

  std::string folder() const { return "/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/" + name_; }
  /// In the rank, before the library is used.
  void join(int rank, int ranks) const {
    setenv("NCCL_FALCON", "1", 1);
    setenv("NCCL_FALCON_JOB", name_.c_str(), 1);
    setenv("NCCL_FALCON_VALIDATE", "off", 1);  // only the test holds the job
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  }
  std::string events() const {
    std::stringstream text;
    text << std::ifstream(folder() + "/events.jsonl").rdbuf();
    return text.str();
  }

 private:
  static int& made() {
    static int count = 0;
    return count;
  }
  const std::string name_;
};

/// Suspends, trying again while the processes are still finding each other or somebody else holds the job.
inline ncclResult_t suspendPatiently(ncclComm_t comm, unsigned limitMilliseconds) {
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < 6000; ++i) {
    result = ncclFalconSuspend(comm, limitMilliseconds);
    if (result != ncclInvalidUsage && result != ncclSystemError) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return result;
}

/// Which processes of a job have been told to hold, on the board from `slot` on.
class ToldProcesses {
 public:
  ToldProcesses(const SharedBoard& board, int slot, int count) : board_(board), slot_(slot), count_(count) {}

  /// In the process.
  void note(int process) const { ncclFalconTrapCallbackAdd(&ToldProcesses::told, &board_->steps[slot_ + process]); }
  bool areAll() const {
    int told = 0;
    for (int process = 0; process < count_; ++process) told += board_->steps[slot_ + process].load();
    return told == count_;
  }

 private:
  static void told(int held, unsigned, void* place) {
    static_cast<std::atomic<int>*>(place)->store(held != NCCL_FALCON_RELEASED);
  }

  const SharedBoard& board_;
  const int slot_, count_;
};

/// Holds the whole job. At first its processes are still finding each other: what is held is a part of it, and is let
/// go, also by itself when another controller is found. That goes on until all have been told, who know each other
/// then.
inline ncclResult_t suspendWhole(ncclComm_t comm, unsigned limitMilliseconds, const ToldProcesses& told) {
  for (int i = 0; i < 6000; ++i) {
    if (const auto held = suspendPatiently(comm, limitMilliseconds); held != ncclSuccess) return held;
    const bool whole = told.areAll();
    const auto gone = ncclFalconResume(comm);
    if (gone != ncclSuccess && gone != ncclInvalidUsage) return gone;
    if (whole && gone == ncclSuccess) return suspendPatiently(comm, limitMilliseconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return ncclInternalError;
}

}  // namespace falcon::test
