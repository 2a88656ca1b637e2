// A program that is linked to the vendor's library, as a framework is; what it was told goes to standard output.
//   program calls        one rank makes every call once
//   program job N SPAN   N ranks iterate for SPAN seconds, with two halves split off
//   program job-late N SPAN   the same, but that the halves' handles come later
//   program job-without-one N SPAN   the same, but that the last rank has Falcon off
//   program lacking      calls what only a newer library has
//   program idle         one call, then what of Falcon is in the process
#include <dirent.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "front/interposed.h"
#include "preload/vendor.h"

namespace {

constexpr std::size_t logBytes = 1 << 20;

/// What only a stand-in for the vendor's library has.
template <class Function>
Function* vendors(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string takeLog() {
  std::string text(logBytes, '\0');
  if (const auto take = vendors<decltype(vendorTakeLog)>("vendorTakeLog")) take(text.data(), text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

void require(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::printf("%s: %d\n", what, result);
}
#define DO(call) require(call, #call)

char in[64], out[64];
const cudaStream_t stream = reinterpret_cast<cudaStream_t>(0x5);

void everyCall(ncclComm_t comm) {
  DO(ncclAllReduce(reinterpret_cast<void*>(0x10), out, 1, ncclFloat, ncclMax, comm, stream));
  DO(ncclBroadcast(in, out, 2, ncclHalf, 0, comm, stream));
  DO(ncclBcast(out, 3, ncclInt8, 0, comm, stream));
  DO(ncclReduce(in, out, 4, ncclDouble, ncclAvg, 0, comm, stream));
  DO(ncclAllGather(in, out, 5, ncclUint8, comm, stream));
  DO(ncclReduceScatter(in, out, 6, ncclInt32, ncclProd, comm, stream));
  DO(ncclAlltoAll(in, out, 7, ncclInt64, comm, stream));
  DO(ncclGather(in, out, 8, ncclUint64, 0, comm, stream));
  DO(ncclScatter(in, out, 9, ncclBfloat16, 0, comm, stream));
  DO(ncclAllReduceConfig(in, out, 10, ncclFloat, ncclSum, comm, stream,
                         reinterpret_cast<const ncclCollConfig_t*>(0x77)));
  // What the vendor refuses or does not know is between it and the program.
  DO(ncclSend(in, 11, ncclFloat, 12345, comm, stream));
  DO(ncclAllReduce(in, out, 12, static_cast<ncclDataType_t>(99), static_cast<ncclRedOp_t>(77), comm, stream));
  DO(ncclGroupStart());
  DO(ncclSend(in, 13, ncclFloat, 0, comm, stream));
  DO(ncclGroupStart());
  DO(ncclRecv(out, 13, ncclFloat, 0, comm, stream));
  DO(ncclGroupEnd());
  DO(ncclGroupEnd());
  DO(ncclGroupStart());
  DO(ncclAllReduce(in, out, 14, ncclFloat, ncclSum, comm, stream));
  DO(ncclGroupSimulateEnd(nullptr));
}

void calls() {
  ncclUniqueId id;
  DO(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  DO(ncclCommInitRank(&comm, 1, id, 0));
  everyCall(comm);
  ncclComm_t half = nullptr, shrunk = nullptr, scalable = nullptr, configured = nullptr;
  DO(ncclCommSplit(comm, 0, 7, &half, nullptr));
  DO(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, half, stream));
  int gone = 0;
  DO(ncclCommShrink(comm, &gone, 0, &shrunk, nullptr, 0));
  DO(ncclGetUniqueId(&id));
  DO(ncclCommInitRankScalable(&scalable, 1, 0, 1, &id, nullptr));
  DO(ncclGetUniqueId(&id));
  DO(ncclCommInitRankConfig(&configured, 1, id, 0, nullptr));
  ncclComm_t all[2] = {};
  DO(ncclCommInitAll(all, 2, nullptr));
  DO(ncclCommAbort(configured));
  for (const ncclComm_t each : {half, shrunk, scalable, comm, all[0], all[1]}) DO(ncclCommDestroy(each));
  // Addresses come again at once.
  for (int i = 0; i < 3; ++i) {
    DO(ncclGetUniqueId(&id));
    DO(ncclCommInitRank(&comm, 1, id, 0));
    DO(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream));
    DO(ncclCommDestroy(comm));
  }
  // A child that was forked calls on.
  if (const pid_t child = fork(); child == 0) {
    DO(ncclGetUniqueId(&id));
    DO(ncclCommInitRank(&comm, 1, id, 0));
    everyCall(comm);
    DO(ncclCommDestroy(comm));
    const std::string log = takeLog();
    std::fputs(log.substr(log.rfind("GetUniqueId")).c_str(), stdout);
    std::fflush(stdout);
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  std::fputs(takeLog().c_str(), stdout);
}

struct Shared {
  ncclUniqueId id;
  volatile int made = 0;
};

int rankOfJob(Shared& shared, int rank, int size, double span, bool late) {
  if (rank == 0) {
    DO(ncclGetUniqueId(&shared.id));
    __sync_synchronize();
    shared.made = 1;
  }
  while (!shared.made) std::this_thread::yield();
  ncclComm_t world = nullptr, half = nullptr;
  DO(ncclCommInitRank(&world, size, shared.id, rank));
  if (late) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t begun = ncclCommSplit(world, rank % 2, rank, &half, &config);
    if (begun != ncclInProgress) std::printf("split: %d\n", begun);
    vendors<decltype(vendorWriteHandles)>("vendorWriteHandles")();
  } else {
    DO(ncclCommSplit(world, rank % 2, rank, &half, nullptr));
  }
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::duration<double>(span)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    DO(ncclAllReduce(in, out, 100, ncclFloat, ncclSum, half, stream));
    DO(ncclGroupStart());
    DO(ncclSend(in, 13, ncclFloat, (rank + 1) % size, world, stream));
    DO(ncclRecv(out, 13, ncclFloat, (rank + size - 1) % size, world, stream));
    DO(ncclGroupEnd());
    DO(ncclAllReduce(in, out, 1000, ncclFloat, ncclSum, world, stream));
  }
  DO(ncclCommDestroy(half));
  DO(ncclCommDestroy(world));
  return 0;
}

int job(int size, double span, const std::string& kind) {
  auto& shared =
      *static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int rank = 0; rank < size; ++rank)
    if (fork() == 0) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
      if (kind == "job-without-one" && rank == size - 1) setenv("NCCL_FALCON", "0", 1);
      std::exit(rankOfJob(shared, rank, size, span, kind == "job-late"));
    }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status != 0;
  return failed;
}

void idle() {
  ncclUniqueId id;
  DO(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  DO(ncclCommInitRank(&comm, 1, id, 0));
  DO(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream));
  int threads = 0;
  DIR* const folder = opendir("/proc/self/task");
  while (const dirent* const entry = readdir(folder)) threads += entry->d_name[0] != '.';
  closedir(folder);
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  std::printf("%d thread(s), core %s\n", threads,
              text.find("libnccl-falcon-core.so") == std::string::npos ? "not loaded" : "loaded");
  DO(ncclCommDestroy(comm));
}

/// Who asks for a function by name may find ours, though the vendor is too old for it.
void lacking() {
  const auto function = reinterpret_cast<decltype(&ncclGatherConfig)>(dlsym(RTLD_DEFAULT, "ncclGatherConfig"));
  if (!function) return void(std::puts("not found"));
  std::printf("%d\n", function(in, out, 10, ncclFloat, 0, nullptr, stream, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "calls") return calls(), 0;
  if (what == "lacking") return lacking(), 0;
  if (what == "idle") return idle(), 0;
  if (what.starts_with("job") && argc > 3) return job(std::atoi(argv[2]), std::atof(argv[3]), what);
  return 2;
}
