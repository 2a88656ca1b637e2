// A rank of a job whose rank 2 waits for its data from the 80th iteration on: between two sums of gradients it sleeps
// in its range "data". Nobody computes: a busy machine changes nothing. Runs until it is ended.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"
#include "nccl_falcon.h"

namespace {

using namespace std::chrono_literals;

void require(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "loading_probe: %s\n", ncclGetLastError(nullptr));
  std::_Exit(1);
}

void spend(const char* name, std::chrono::milliseconds time) {
  require(ncclFalconRangeBegin(name));
  std::this_thread::sleep_for(time);
  require(ncclFalconRangeEnd());
}

}  // namespace

int main() {
  const int rank = std::stoi(std::getenv("RANK")), size = std::stoi(std::getenv("WORLD_SIZE"));
  ::setenv("NCCL_COMM_ID", (std::string(std::getenv("MASTER_ADDR")) + ":" + std::getenv("MASTER_PORT")).c_str(), 1);
  ncclUniqueId id;
  require(ncclGetUniqueId(&id));
  ncclComm_t all = nullptr;
  require(ncclCommInitRank(&all, size, id, rank));
  std::vector<float> data(10'000);
  const auto sum = [&](std::size_t count) {
    require(ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclMax, all, nullptr));
  };
  for (int iteration = 0;; ++iteration) {
    spend("data", rank == 2 && iteration >= 80 ? 60ms : 3ms);
    sum(10'000);
    spend("forward", 12ms);
    sum(5'000);
    spend("backward", 15ms);
    sum(100);
  }
}
