// A program that is linked to the vendor's library and opens another library of NCCL by its path, as those do that look
// its functions up themselves.
//   opening_program LIBRARY        only calls through the library that it opens
//   opening_program LIBRARY first  then those that it is linked to
//   opening_program LIBRARY last   the other way round
//   opening_program LIBRARY meets PLUGIN MICROSECONDS   its first call, while another thread opens PLUGIN
// What the vendor was told goes to standard output, and for each communicator whether Falcon has its rendezvous in the
// unique id, as it has where it watches.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>

#include "front/interposed.h"
#include "preload/vendor.h"

namespace {

void require(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) std::printf("%s: %d\n", what, result);
}

struct Functions {
  decltype(&::ncclGetUniqueId) getUniqueId;
  decltype(&::ncclCommInitRank) commInitRank;
  decltype(&::ncclAllReduce) allReduce;
  decltype(&::ncclBcast) bcast;
  decltype(&::ncclCommDestroy) commDestroy;
};

Functions functionsOf(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) std::printf("%s\n", dlerror());
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library ? dlsym(library, name) : nullptr);
    if (!function) std::exit(3);
  };
  Functions found{};
  find(found.getUniqueId, "ncclGetUniqueId");
  find(found.commInitRank, "ncclCommInitRank");
  find(found.allReduce, "ncclAllReduce");
  find(found.bcast, "ncclBcast");
  find(found.commDestroy, "ncclCommDestroy");
  return found;
}

const Functions linked{ncclGetUniqueId, ncclCommInitRank, ncclAllReduce, ncclBcast, ncclCommDestroy};

char in[64], out[64];

bool isFurnished(const ncclUniqueId& id) {
  return std::any_of(std::begin(id.internal) + 40, std::end(id.internal), [](char byte) { return byte != 0; });
}

void use(const char* whose, const Functions& nccl, std::size_t count) {
  const auto stream = reinterpret_cast<cudaStream_t>(0x5);
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  require(nccl.getUniqueId(&id), "ncclGetUniqueId");
  std::printf("%s: %s\n", whose, isFurnished(id) ? "watched" : "not watched");
  require(nccl.commInitRank(&comm, 1, id, 0), "ncclCommInitRank");
  if (!comm) return;
  require(nccl.allReduce(in, out, count, ncclInt8, ncclSum, comm, stream), "ncclAllReduce");
  require(nccl.bcast(out, count, ncclInt8, 0, comm, stream), "ncclBcast");
  require(nccl.commDestroy(comm), "ncclCommDestroy");
}

/// The vendor that is loaded, whoever uses it.
void printLog(const char* path) {
  for (void* const library : {RTLD_DEFAULT, dlopen(path, RTLD_NOW | RTLD_LOCAL)}) {
    const auto take = reinterpret_cast<decltype(&vendorTakeLog)>(dlsym(library, "vendorTakeLog"));
    if (!take) continue;
    std::string text(1 << 16, '\0');
    take(text.data(), text.size());
    std::fputs(text.c_str(), stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string order = argc > 2 ? argv[2] : "alone";
  if (order == "meets" && argc > 4) {
    std::thread opening([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(argv[4])));
      if (!dlopen(argv[3], RTLD_NOW)) std::printf("%s\n", dlerror());
    });
    ncclUniqueId id;
    require(ncclGetUniqueId(&id), "ncclGetUniqueId");
    opening.join();
    return 0;
  }
  if (order == "last") use("linked", linked, 1);
  use("opened", functionsOf(argv[1]), 2);
  if (order == "first") use("linked", linked, 1);
  printLog(argv[1]);
  std::printf("core %sloaded\n", dlopen("libnccl-falcon-core.so", RTLD_LAZY | RTLD_NOLOAD) ? "" : "not ");
  return 0;
}
