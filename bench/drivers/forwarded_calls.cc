// Nanoseconds of an ncclAllReduce that the vendor's library returns from at once, above those of calling that library
// directly: the median of 1001 rounds of each, taken in turns. A round is short, so that in most of them no other
// program gets the core. Its argument is that library's path.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "nccl.h"

namespace {

using Function = decltype(&ncclAllReduce);
float buffer[1];
constexpr int calls = 2'000, rounds = 1001;

double round(Function function, ncclComm_t comm) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) function(buffer, buffer, 1, ncclFloat, ncclSum, comm, nullptr);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

}  // namespace

int main(int, char** arguments) {
  void* const vendor = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!vendor) return 2;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) return 1;
  std::this_thread::sleep_for(std::chrono::seconds(1));  // where it is watched it is by now
  // Through pointers, so that both are called alike.
  volatile Function direct = reinterpret_cast<Function>(dlsym(vendor, "pncclAllReduce")), byName = ncclAllReduce;
  std::vector<double> directly, named;
  for (int i = 0; i < rounds; ++i) {
    directly.push_back(round(direct, comm));
    named.push_back(round(byName, comm));
  }
  std::printf("%.1f %.1f\n", median(directly), median(named) - median(directly));
  return ncclCommDestroy(comm);
}
