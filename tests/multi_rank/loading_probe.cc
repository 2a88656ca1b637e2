// A rank of a job whose rank 2 waits for its data from some iteration on: between two sums of gradients it sleeps in
// its range "data". Nobody computes: a busy machine changes nothing. Runs until it is ended.
//
//   loading_probe FROM MILLISECONDS [work|long]   from which iteration on, and for how long; 3 ms before. With `work`
//                                                 the sequences differ in length from iteration to iteration, and are
//                                                 told; with `long` all else takes four times as long.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"
#include "nccl_falcon.h"

namespace {

void require(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "loading_probe: %s\n", ncclGetLastError(nullptr));
  std::_Exit(1);
}

/// Sleeps in a range of that name. By how much it ends late, the next one ends earlier: else the three of an iteration
/// are an onset by themselves where the machine is busy.
void spend(const char* name, double milliseconds) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  static Milliseconds late{0};
  const auto until = std::chrono::steady_clock::now() + Milliseconds(milliseconds) - late;
  require(ncclFalconRangeBegin(name));
  std::this_thread::sleep_until(until);
  require(ncclFalconRangeEnd());
  late = std::chrono::steady_clock::now() - until;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return std::fprintf(stderr, "loading_probe: FROM MILLISECONDS [work|long]\n"), 2;
  const int from = std::stoi(words[1]);
  const double slow = std::stod(words[2]);
  const std::string kind = count > 3 ? words[3] : "";
  const bool tells = kind == "work";
  const double usual = kind == "long" ? 4 : 1;
  const int rank = std::stoi(std::getenv("RANK")), size = std::stoi(std::getenv("WORLD_SIZE"));
  ::setenv("NCCL_COMM_ID", (std::string(std::getenv("MASTER_ADDR")) + ":" + std::getenv("MASTER_PORT")).c_str(), 1);
  ncclUniqueId id;
  require(ncclGetUniqueId(&id));
  ncclComm_t all = nullptr;
  require(ncclCommInitRank(&all, size, id, rank));
  std::vector<float> data(10'000);
  const auto sum = [&](std::size_t elements) {
    require(ncclAllReduce(data.data(), data.data(), elements, ncclFloat, ncclMax, all, nullptr));
  };
  std::mt19937 random(1);  // the same sequences on all ranks
  for (int iteration = 0;; ++iteration) {
    const double length = tells ? std::uniform_real_distribution<>(0.5, 1.5)(random) : usual;
    if (tells) require(ncclFalconIterationWork(4096 * length));
    spend("data", rank == 2 && iteration >= from ? slow : 3 * usual);
    sum(10'000);
    spend("forward", 12 * length);
    sum(5'000);
    spend("backward", 15 * length);
    sum(100);
  }
}
