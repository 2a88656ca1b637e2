// What a rank does to be caught hanging: stuck_probe WHAT.
// All ranks do 20 rounds of AllReduce on a communicator of all ("dp") and on one of their half; then rank 1 does what
// WHAT says while the others go on. It ends only when it is killed, but for `none`.
// stuck_probe init-late, init-stop, init-split, init-second: rank 1 does not come to a communicator, or is stopped on
// the way.
// stuck_probe until FILE: goes on and on until FILE exists, and checks every sum.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "instrument/rank_snapshot.h"
#include "nccl.h"

namespace {

void require(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "stuck_probe: %s\n", ncclGetLastError(nullptr));
  std::fflush(nullptr);
  // The death of another rank is seen; what is asked here is how it looks from outside.
  for (;;) ::pause();
}

class Probe {
 public:
  Probe(int rank, int size) : rank_(rank), size_(size), data_(100'000) {
    ncclUniqueId id;
    require(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "dp";
    require(ncclCommInitRankConfig(&all_, size, id, rank, &config));
    ncclConfig_t part = NCCL_CONFIG_INITIALIZER;
    part.commName = "half";
    require(ncclCommSplit(all_, rank % 2, rank, &half_, &part));
  }

  void run(const std::string& what) {
    for (int round = 0; round < 20; ++round) {
      sum(all_, 1000);
      sum(half_, 10);
    }
    const bool first = rank_ == 1;
    if ((what == "sleep" || what == "init-split" || what == "init-second") && first) sleepForEver();
    if (what == "init-split") makePart();
    if (what == "init-second") makeAnother();
    if (what == "stop" && first) ::raise(SIGSTOP);
    if (what == "kill" && first) ::raise(SIGKILL);
    if (what == "chain" && first) sleepForEver();
    if (what == "chain") sum(half_, 10);  // rank 3 waits for rank 1 there, and ranks 0 and 2 for rank 3 here
    if (what == "skip" && first) sum(half_, 10);
    if (what == "other" && first) require(ncclBroadcast(data_.data(), data_.data(), 77, ncclInt, 0, all_, nullptr));
    if (what == "count") sum(all_, first ? 60'000 : 50'000);
    if (what == "group") inGroup(first);
    if (what == "send") message(first);
    if (what == "size") unequal(first);
    sum(all_, 1000);
    if (what == "none") return;
    sum(half_, 10);
    sleepForEver();
  }

  /// False: a sum was wrong.
  bool runUntil(const char* file) {
    std::vector<std::uint32_t> values(5000);
    const auto ranks = static_cast<std::uint32_t>(size_);
    for (std::uint32_t round = 0;; ++round) {
      for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = round * i + static_cast<std::uint32_t>(rank_);
      values[0] = rank_ == 0 && ::access(file, F_OK) == 0 ? 1 : 0;
      require(ncclAllReduce(values.data(), values.data(), values.size(), ncclUint32, ncclSum, all_, nullptr));
      for (std::uint32_t i = 1; i < values.size(); ++i)
        if (values[i] != ranks * round * i + ranks * (ranks - 1) / 2) return false;
      if (values[0] != 0) return true;
      ::usleep(1000);
    }
  }

  void end() {
    require(ncclCommDestroy(half_));
    require(ncclCommDestroy(all_));
  }

 private:
  void makePart() {
    ncclComm_t part = nullptr;
    require(ncclCommSplit(all_, 0, rank_, &part, nullptr));
  }
  void makeAnother() {
    ncclUniqueId id;
    require(ncclGetUniqueId(&id));
    ncclComm_t another = nullptr;
    require(ncclCommInitRank(&another, size_, id, rank_));
  }
  void sum(ncclComm_t communicator, std::size_t count) {
    require(ncclAllReduce(data_.data(), data_.data(), count, ncclFloat, ncclMax, communicator, nullptr));
  }
  // Everybody passes a message on in a ring; the first one only receives.
  void inGroup(bool onlyReceives) {
    require(ncclGroupStart());
    if (!onlyReceives) require(ncclSend(data_.data(), 90'000, ncclFloat, (rank_ + 1) % size_, all_, nullptr));
    require(ncclRecv(data_.data(), 90'000, ncclFloat, (rank_ + size_ - 1) % size_, all_, nullptr));
    require(ncclGroupEnd());
  }
  void message(bool expectsOneTooMany) {
    if (rank_ == 0) require(ncclSend(data_.data(), 10, ncclFloat, 1, all_, nullptr));
    for (int i = 0; expectsOneTooMany && i < 2; ++i) require(ncclRecv(data_.data(), 10, ncclFloat, 0, all_, nullptr));
  }
  void unequal(bool receives) {
    if (rank_ == 0) require(ncclSend(data_.data(), 50'000, ncclFloat, 1, all_, nullptr));
    if (receives) require(ncclRecv(data_.data(), 90'000, ncclFloat, 0, all_, nullptr));
  }
  [[noreturn]] static void sleepForEver() {
    for (;;) ::pause();
  }

  const int rank_, size_;
  std::vector<float> data_;
  ncclComm_t all_ = nullptr, half_ = nullptr;
};

std::string logOf(int rank) {
  return falcon::instrument::jobFolder(std::getenv("NCCL_FALCON_JOB")) + "/rank-" + std::to_string(rank) + ".calls";
}

/// Rank 1 stops inside of ncclCommInitRank; rank 0 comes when it has, so that it cannot have left it before.
void stopOnTheWay(int rank) {
  using namespace falcon::instrument;
  const auto isMaking = [] {
    const auto log = readCallLog(logOf(1), 0);
    return log && !log->makings.empty();
  };
  const auto isStopped = [] {
    const auto log = readCallLog(logOf(1), 0);
    return log && processStateOf(*log) == ProcessState::stopped;
  };
  if (rank == 1)
    std::thread([isMaking] {
      while (!isMaking()) ::usleep(1000);
      ::raise(SIGSTOP);
    }).detach();
  while (rank == 0 && !isStopped()) ::usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
  const bool until = argc == 3 && std::strcmp(argv[1], "until") == 0;
  if (argc != 2 && !until) return 2;
  const int rank = std::atoi(std::getenv("RANK"));
  if (std::strcmp(argv[1], "init-late") == 0 && rank == 1)
    for (;;) ::pause();
  if (std::strcmp(argv[1], "init-stop") == 0) stopOnTheWay(rank);
  ::setenv("NCCL_COMM_ID", (std::string(std::getenv("MASTER_ADDR")) + ":" + std::getenv("MASTER_PORT")).c_str(), 1);
  Probe probe(rank, std::atoi(std::getenv("WORLD_SIZE")));
  if (!until)
    probe.run(argv[1]);
  else if (!probe.runUntil(argv[2]))
    return 1;
  probe.end();
}
