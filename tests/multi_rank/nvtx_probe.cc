// A rank of a job that names its code with NVTX and knows nothing of Falcon. Runs until it is ended.
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"

namespace {

using namespace std::chrono_literals;

void require(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "nvtx_probe: %s\n", ncclGetLastError(nullptr));
  std::_Exit(1);
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
    nvtxRangePushA(("iteration " + std::to_string(iteration)).c_str());
    nvtxRangePushA("forward");
    std::this_thread::sleep_for(5ms);
    nvtxRangePop();
    sum(5'000);
    nvtxRangePushA("backward");
    std::this_thread::sleep_for(10ms);
    nvtxRangePop();
    nvtxRangePop();
    sum(100);
  }
}
