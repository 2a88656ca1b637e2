// A program that is linked to the vendor's library, as a framework is; what it was told goes to standard output.
//   program calls        one rank makes every call once
//   program job N SPAN   N ranks iterate for SPAN seconds, with two halves split off; longer, on a slow machine, until
//   NCCL_FALCON_EVENTS has what AWAITED_EVENT names
//   program job-late N SPAN   the same, but that the halves' handles come later
//   program job-moved N SPAN  the same, but that the halves' handles are copied from where the vendor wrote them
//   program job-missed-split N SPAN  a rank gets no thread at its first split of two; the job is suspended all the same
//   program job-without-one N SPAN   the same, but that the last rank has Falcon off
//   program job-twice N SPAN  the same, but that all ranks make a second communicator of the same id
//   program job-growing N SPAN  the same, but that the last rank joins later; job-growing-silently: no rank passes the
//   id on
//   program job-losing-first N SPAN  the same, but that rank 0 is killed once the job's start is in NCCL_FALCON_EVENTS,
//   and the others iterate for SPAN seconds after that
//   program job-told N SPAN   N ranks tell Falcon what they do (nccl_falcon.h)
//   program id           the bytes of a unique id
//   program extension    calls every function of nccl_falcon.h
//   program lacking      calls what only a newer library has
//   program idle         one call, then what of Falcon is in the process; idle-elsewhere: it has gone to another
//   working folder before
//   program unused N     N children that are made in groups and ended without a call, then whether threads are left;
//   unused-moved: their handles are copied
//   program ended N      N communicators that are ended before the other rank comes, then whether descriptors are left
#include <dirent.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "front/interposed.h"
#include "harness/fake_profiler.h"
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
const ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
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
  DO(ncclAllReduceConfig(in, out, 10, ncclFloat, ncclSum, comm, stream, &config));
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
  ncclComm_t grown = nullptr, joined = nullptr;
  DO(ncclCommGetUniqueId(comm, &id));
  DO(ncclCommGrow(comm, 3, &id, -1, &grown, nullptr));
  DO(ncclCommGrow(nullptr, 3, &id, 2, &joined, nullptr));
  DO(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, grown, stream));
  ncclComm_t all[2] = {};
  DO(ncclCommInitAll(all, 2, nullptr));
  DO(ncclCommAbort(configured));
  for (const ncclComm_t each : {half, shrunk, scalable, comm, grown, joined, all[0], all[1]}) DO(ncclCommDestroy(each));
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
  ncclUniqueId id, growthId;
  volatile int made = 0, growthMade = 0, firstIsKilled = 0, wasSuspended = 0;
};

ncclUniqueId idOf(Shared& shared, int rank) {
  // Each makes it for itself.
  if (std::getenv("NCCL_COMM_ID")) {
    ncclUniqueId own;
    DO(ncclGetUniqueId(&own));
    return own;
  }
  if (rank == 0) {
    DO(ncclGetUniqueId(&shared.id));
    __sync_synchronize();
    shared.made = 1;
  }
  while (!shared.made) std::this_thread::yield();
  return shared.id;
}

/// Of all ranks but the last, which joins.
ncclComm_t growingWorld(Shared& shared, int rank, int size, bool passesId) {
  ncclComm_t before = nullptr, world = nullptr;
  if (rank < size - 1) {
    DO(ncclCommInitRank(&before, size - 1, idOf(shared, rank), rank));
    if (rank == 1) {
      DO(ncclCommGetUniqueId(before, &shared.growthId));
      __sync_synchronize();
      shared.growthMade = 1;
    }
    DO(ncclCommGrow(before, size, rank == 1 && passesId ? &shared.growthId : nullptr, -1, &world, nullptr));
    DO(ncclCommDestroy(before));
    return world;
  }
  while (!shared.growthMade) std::this_thread::yield();
  DO(ncclCommGrow(nullptr, size, &shared.growthId, rank, &world, nullptr));
  return world;
}

/// The handle's first place is a variable of this function alone.
ncclComm_t splitByHelper(ncclComm_t comm, int color, int key) {
  ncclComm_t handle = nullptr;
  DO(ncclGroupStart());
  DO(ncclCommSplit(comm, color, key, &handle, nullptr));
  DO(ncclGroupEnd());
  const ncclComm_t copy = handle;
  *const_cast<ncclComm_t volatile*>(&handle) = nullptr;
  return copy;
}

bool isTold(const char* event) {
  std::ifstream events(std::getenv("NCCL_FALCON_EVENTS"));
  const std::string text((std::istreambuf_iterator<char>(events)), {});
  return text.find(event) != std::string::npos;
}

/// Longer than a slow machine takes for what others take a second for.
constexpr std::chrono::seconds patience{60};

int rankOfJob(Shared& shared, int rank, int size, double span, const std::string& kind) {
  const bool late = kind == "job-late";
  ncclComm_t world = nullptr, half = nullptr, second = nullptr;
  if (kind.starts_with("job-growing")) {
    world = growingWorld(shared, rank, size, kind == "job-growing");
  } else {
    const ncclUniqueId id = idOf(shared, rank);
    DO(ncclCommInitRank(&world, size, id, rank));
    if (kind == "job-twice") DO(ncclCommInitRank(&second, size, id, rank));
  }
  if (late) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t begun = ncclCommSplit(world, rank % 2, rank, &half, &config);
    if (begun != ncclInProgress) std::printf("split: %d\n", begun);
    vendors<decltype(vendorWriteHandles)>("vendorWriteHandles")();
  } else if (kind == "job-moved") {
    half = splitByHelper(world, rank % 2, rank);
  } else {
    DO(ncclCommSplit(world, rank % 2, rank, &half, nullptr));
  }
  const char* const awaited = std::getenv("AWAITED_EVENT");
  bool losesFirst = kind == "job-losing-first";
  auto start = std::chrono::steady_clock::now();
  const auto goesOn = [&] {
    const auto time = std::chrono::steady_clock::now() - start;
    if (time < std::chrono::duration<double>(span)) return true;
    return time < patience && (losesFirst || (awaited && !isTold(awaited)));
  };
  while (goesOn()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    DO(ncclAllReduce(in, out, 100, ncclFloat, ncclSum, half, stream));
    DO(ncclGroupStart());
    DO(ncclSend(in, 13, ncclFloat, (rank + 1) % size, world, stream));
    DO(ncclRecv(out, 13, ncclFloat, (rank + size - 1) % size, world, stream));
    DO(ncclGroupEnd());
    DO(ncclAllReduce(in, out, 1000, ncclFloat, ncclSum, world, stream));
    if (second) DO(ncclAllReduce(in, out, 10, ncclFloat, ncclSum, second, stream));
    if (losesFirst && rank == 0 && isTold("job-started")) {
      shared.firstIsKilled = 1;
      std::raise(SIGKILL);
    }
    if (losesFirst && shared.firstIsKilled) {
      losesFirst = false;
      start = std::chrono::steady_clock::now();
    }
  }
  if (rank == 0)
    if (const char* const command = std::getenv("BEFORE_THE_END")) std::printf("%d\n", std::system(command));
  if (rank == 0 && std::getenv("SHOW_PROFILED")) {
    int told = 0, untold = 0;
    vendors<decltype(vendorTellCalls)>("vendorTellCalls")(&told, &untold);
    std::printf("%d told, %d untold\n", told, untold);
  }
  if (second) DO(ncclCommDestroy(second));
  DO(ncclCommDestroy(half));
  DO(ncclCommDestroy(world));
  return 0;
}

/// nccl_falcon.h, as a program has it that must also run without Falcon.
#define EXTENSION(name) vendors<decltype(name)>(#name)

std::atomic<int> timesHeld{0}, timesReleased{0};
void noteHeld(int held, unsigned, void*) {
  ++(held == NCCL_FALCON_RELEASED ? timesReleased : timesHeld);
}

/// So often does the file of ranges that Falcon keeps of this rank have the name.
bool rangesHave(const char* name, int rank) {
  std::ifstream file("/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/" + std::getenv("NCCL_FALCON_JOB") +
                     "/rank-" + std::to_string(rank) + ".ranges");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.find(name) != std::string::npos;
}

bool isBefore(std::chrono::steady_clock::time_point start, double seconds) {
  return std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds);
}

/// Suspends the job after that many seconds and lets it go on; tried again while Falcon, where it is on, has not met
/// all ranks yet.
void suspendOnce(Shared& shared, ncclComm_t world, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const char* const falcon = std::getenv("NCCL_FALCON");
  const bool isOn = falcon && *falcon == '1';
  ncclResult_t held = ncclInvalidUsage;
  do {
    held = EXTENSION(ncclFalconSuspend)(world, 5000);
    if (held != ncclSuccess) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (held != ncclSuccess && isOn && std::chrono::steady_clock::now() - start < patience / 2);
  require(held, "ncclFalconSuspend");
  DO(EXTENSION(ncclFalconResume)(world));
  shared.wasSuspended = 1;
}

/// What was told of iterations' ends.
struct HeardEnds {
  int count = 0;
  uint64_t next = 0;
  ncclFalconIterationEnd_t last{};
};
void hear(const ncclFalconIterationEnd_t* end, void* heard) {
  auto& own = *static_cast<HeardEnds*>(heard);
  if (own.count > 0 && end->iteration != own.next) std::puts("an end is missing");
  ++own.count;
  own.next = end->next;
  own.last = *end;
}

/// A framework that tells Falcon what it does: each rank a replica.
int toldRank(Shared& shared, int rank, int size, double span) {
  DO(EXTENSION(ncclFalconTrapCallbackAdd)(noteHeld, nullptr));
  ncclComm_t world = nullptr;
  DO(ncclCommInitRank(&world, size, idOf(shared, rank), rank));
  const ncclFalconLayout_t layout{sizeof layout, size, 1, 1, rank, 0, 0, 4 * size + 1};
  DO(EXTENSION(ncclFalconRegisterLayout)(world, &layout));
  std::thread suspends([&] {
    if (rank == 0) suspendOnce(shared, world, span / 2);
  });
  // Kept and restored over Falcon's network of the vendor's communicator, which is on its way still. Off, it is
  // refused.
  int common = 4711, own = 100 + rank;
  uint64_t restored = 0;
  const bool keeps = std::getenv("NCCL_FALCON_CHECKPOINT_DIR") != nullptr;
  if (keeps) {
    DO(EXTENSION(ncclFalconRegisterState)(world, "common", &common, sizeof common, NCCL_FALCON_STATE_REPLICATED));
    DO(EXTENSION(ncclFalconRegisterState)(world, "own", &own, sizeof own, 0));
    DO(EXTENSION(ncclFalconCheckpoint)(world, 3, nullptr));
    common = own = 0;
    DO(EXTENSION(ncclFalconCheckpointSynchronize)(world));
    DO(EXTENSION(ncclFalconCheckpoint)(world, 2, nullptr));  // so that all have written the one before
    DO(EXTENSION(ncclFalconCheckpointSynchronize)(world));
    DO(EXTENSION(ncclFalconRestore)(world, nullptr, &restored));
    if (restored != 3 || common != 4711 || own != 100 + rank)
      std::printf("restored %d: %d, %d\n", static_cast<int>(restored), common, own);
    DO(EXTENSION(ncclFalconUnregisterState)(world, "own"));
  }
  HeardEnds heard;
  DO(EXTENSION(ncclFalconIterationCallback)(world, hear, &heard, NCCL_FALCON_CALLBACK_RESTARTS));
  const auto start = std::chrono::steady_clock::now();
  const double longest = span + (std::getenv("AWAIT_HEALTH") ? 30 : 0);
  int iteration = 0;
  for (;; ++iteration) {
    const bool isHealthTold = heard.last.health != NCCL_FALCON_HEALTH_UNKNOWN;
    if (!isBefore(start, isHealthTold ? span : longest) && shared.wasSuspended) break;
    unsigned wanted = 7;
    DO(EXTENSION(ncclFalconWanted)(world, iteration, &wanted));
    if (wanted != 0) std::printf("wanted: %u\n", wanted);
    ncclFalconPlan_t plan{sizeof plan, 77, 0, 0, 0};
    DO(EXTENSION(ncclFalconIterationBegin)(world, iteration, &plan));
    if (plan.microBatches != 4 + (rank == 0) || plan.firstMicroBatch != 4 * rank + (rank > 0))
      std::printf("plan: %d from %d\n", plan.microBatches, plan.firstMicroBatch);
    DO(EXTENSION(ncclFalconRangeBegin)("forward pass"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    DO(EXTENSION(ncclFalconRangeEnd)());
    ncclConfigExt_t group{nullptr, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_GROUP}, {.i = 5}};
    ncclConfigExt_t number{&group, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_ITERATION}, {.i = iteration}};
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.ext = &number;
    config.userProfilerTag = 4711;
    DO(ncclAllReduceConfig(in, out, 1000, ncclFloat, ncclSum, world, stream, &config));
  }
  suspends.join();
  if (heard.count != iteration - 1 || heard.last.seconds < 0.02 || heard.last.microBatches != 4 + (rank == 0))
    std::printf("%d ends of %d, the last after %g s\n", heard.count, iteration, heard.last.seconds);
  if (std::getenv("AWAIT_HEALTH") && heard.last.health == NCCL_FALCON_HEALTH_UNKNOWN) std::puts("no health was told");
  if (!rangesHave("forward pass", rank)) std::puts("the range was not recorded");
  for (int i = 0; i < 6000 && timesHeld != timesReleased; ++i)  // it hears of that a moment later
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (timesHeld == 0 || timesHeld != timesReleased) std::printf("held %d, let go %d\n", +timesHeld, +timesReleased);
  DO(EXTENSION(ncclFalconTrapCallbackRemove)(noteHeld, nullptr));
  int code = 0;
  if (keeps) DO(EXTENSION(ncclFalconRestart)(world, &code));
  if (keeps && code != 143) std::printf("code: %d\n", code);
  if (rank == 0)
    if (const char* const command = std::getenv("BEFORE_THE_END")) std::printf("%d\n", std::system(command));
  DO(ncclCommDestroy(world));
  return 0;
}

int rankThatMissesASplit(Shared& shared, int rank, int size, double span) {
  ncclComm_t world = nullptr, first = nullptr, second = nullptr;
  DO(ncclCommInitRank(&world, size, idOf(shared, rank), rank));
  const auto refuse = vendors<void(int)>("refuseThreads");
  if (rank == 1) refuse(1);
  DO(ncclCommSplit(world, rank % 2, rank, &first, nullptr));
  refuse(0);
  DO(ncclCommSplit(world, rank % 2, rank, &second, nullptr));
  std::thread suspends([&] {
    if (rank == 0) suspendOnce(shared, world, span / 2);
  });
  const auto start = std::chrono::steady_clock::now();
  while (isBefore(start, span) || !shared.wasSuspended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (const ncclComm_t each : {first, first, second, world})
      DO(ncclAllReduce(in, out, 100, ncclFloat, ncclSum, each, stream));
  }
  suspends.join();
  for (const ncclComm_t each : {first, second, world}) DO(ncclCommDestroy(each));
  return 0;
}

void noteDone(ncclResult_t, void* made) {
  *static_cast<ncclFalconStream_t*>(made) = nullptr;
}

/// The result of each function of nccl_falcon.h, right and wrong.
void extension() {
  const auto say = [](const char* what, ncclResult_t result) { std::printf("%s %d\n", what, result); };
  const auto range = EXTENSION(ncclFalconRangeBegin);
  if (!range) return void(std::puts("not there"));
  int version = 0;
  say("GetVersion", EXTENSION(ncclFalconGetVersion)(&version));
  say("GetVersion(NULL)", EXTENSION(ncclFalconGetVersion)(nullptr));
  say("RangeBegin", range("forward"));
  say("RangeBegin(NULL)", range(nullptr));
  say("RangeEnd", EXTENSION(ncclFalconRangeEnd)());
  say("IterationWork", EXTENSION(ncclFalconIterationWork)(4096));
  say("IterationWork(0)", EXTENSION(ncclFalconIterationWork)(0));
  ncclFalconStream_t made = nullptr;
  int state = 5, code = 0;
  say("RegisterState(NULL)", EXTENSION(ncclFalconRegisterState)(nullptr, "a", &state, sizeof state, 0));
  say("CheckpointSynchronize(NULL)", EXTENSION(ncclFalconCheckpointSynchronize)(nullptr));
  say("Wanted(NULL)", EXTENSION(ncclFalconWanted)(nullptr, 0, nullptr));
  say("Restart(NULL)", EXTENSION(ncclFalconRestart)(nullptr, &code));
  const ncclFalconReshapeHooks_t hooks{sizeof hooks, nullptr, nullptr, nullptr, nullptr, nullptr, 0};
  const int roles[] = {0};
  int role = 0;
  say("RegisterReshape", EXTENSION(ncclFalconRegisterReshape)(reinterpret_cast<ncclComm_t>(&state), &hooks));
  say("Reshape", EXTENSION(ncclFalconReshape)(reinterpret_cast<ncclComm_t>(&state), roles, 1));
  say("Role(NULL)", EXTENSION(ncclFalconRole)(nullptr, &role));
  say("Roles(NULL)", EXTENSION(ncclFalconRoles)(nullptr, &role, 1));
  ncclUniqueId hostId;
  say("GetHostUniqueId", EXTENSION(ncclFalconGetHostUniqueId)(&hostId));
  say("StreamCreate", EXTENSION(ncclFalconStreamCreate)(&made));
  say("StreamQuery(NULL)", EXTENSION(ncclFalconStreamQuery)(nullptr));
  say("StreamSynchronize(other)", EXTENSION(ncclFalconStreamSynchronize)(stream));
  say("StreamCallback(NULL stream)", EXTENSION(ncclFalconStreamCallback)(nullptr, noteDone, &made));
  say("StreamCallback(other)", EXTENSION(ncclFalconStreamCallback)(stream, noteDone, &made));
  say("StreamCallback(NULL)", EXTENSION(ncclFalconStreamCallback)(nullptr, nullptr, nullptr));
  ncclRedOp_t op = ncclSum;
  say("RedOpCreateBitwise", EXTENSION(ncclFalconRedOpCreateBitwise)(&op, ncclFalconBitwiseAnd, ncclInt, nullptr));
  say("StreamDestroy(other)", EXTENSION(ncclFalconStreamDestroy)(stream));
  say("TrapCallbackAdd", EXTENSION(ncclFalconTrapCallbackAdd)(noteHeld, nullptr));
  say("TrapCallbackRemove", EXTENSION(ncclFalconTrapCallbackRemove)(noteHeld, nullptr));
  say("TrapCallbackAdd(NULL)", EXTENSION(ncclFalconTrapCallbackAdd)(nullptr, nullptr));
  ncclUniqueId id;
  DO(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  DO(ncclCommInitRank(&comm, 1, id, 0));
  ncclFalconPlan_t plan{sizeof plan, 77, 0, 0, 0};
  say("IterationBegin without a layout", EXTENSION(ncclFalconIterationBegin)(comm, 0, &plan));
  ncclFalconLayout_t layout{sizeof layout, 2, 1, 1, 0, 0, 0, 8};
  say("RegisterLayout of two ranks", EXTENSION(ncclFalconRegisterLayout)(comm, &layout));
  layout.dataParallelSize = 1;
  layout.size = 8;
  say("RegisterLayout of no size", EXTENSION(ncclFalconRegisterLayout)(comm, &layout));
  layout.size = sizeof layout;
  say("RegisterLayout(NULL)", EXTENSION(ncclFalconRegisterLayout)(nullptr, &layout));
  say("RegisterLayout", EXTENSION(ncclFalconRegisterLayout)(comm, &layout));
  say("IterationBegin", EXTENSION(ncclFalconIterationBegin)(comm, 0, &plan));
  std::printf("%d from %d, %g\n", plan.microBatches, plan.firstMicroBatch, plan.gradientWeight);
  HeardEnds heard;
  say("IterationCallback(NULL)", EXTENSION(ncclFalconIterationCallback)(nullptr, hear, &heard, 0));
  say("IterationCallback of no flag", EXTENSION(ncclFalconIterationCallback)(comm, hear, &heard, 2));
  say("IterationCallback", EXTENSION(ncclFalconIterationCallback)(comm, hear, &heard, 0));
  DO(EXTENSION(ncclFalconIterationBegin)(comm, 1, &plan));
  DO(EXTENSION(ncclFalconIterationCallback)(comm, nullptr, nullptr, 0));
  DO(EXTENSION(ncclFalconIterationBegin)(comm, 2, &plan));
  DO(EXTENSION(ncclFalconIterationCallback)(comm, hear, &heard, 0));
  std::printf("%d told, health %d, wanted %u, %d from %d\n", heard.count, heard.last.health, heard.last.wanted,
              heard.last.microBatches, heard.last.firstMicroBatch);
  DO(ncclCommDestroy(comm));
  say("IterationBegin afterwards", EXTENSION(ncclFalconIterationBegin)(comm, 3, &plan));
  std::printf("%d told\n", heard.count);
  say("Suspend(NULL)", EXTENSION(ncclFalconSuspend)(nullptr, 0));
  ncclComm_t other = nullptr;
  DO(ncclGetUniqueId(&id));
  DO(ncclCommInitRank(&other, 1, id, 0));
  if (std::getenv("NCCL_FALCON_OFF")) {
    say("Suspend", EXTENSION(ncclFalconSuspend)(other, 0));
    uint64_t iteration = 0;
    unsigned wanted = 7;
    say("RegisterState", EXTENSION(ncclFalconRegisterState)(other, "a", &state, sizeof state, 0));
    say("Checkpoint", EXTENSION(ncclFalconCheckpoint)(other, 1, "/tmp"));
    say("CheckpointSynchronize", EXTENSION(ncclFalconCheckpointSynchronize)(other));
    say("Restore", EXTENSION(ncclFalconRestore)(other, "/tmp", &iteration));
    say("Wanted", EXTENSION(ncclFalconWanted)(other, 0, &wanted));
    std::printf("%u\n", wanted);
    say("Restart", EXTENSION(ncclFalconRestart)(other, &code));
    say("UnregisterState", EXTENSION(ncclFalconUnregisterState)(other, "a"));
  }
  DO(ncclCommDestroy(other));
}

int job(int size, double span, const std::string& kind) {
  auto& shared =
      *static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int rank = 0; rank < size; ++rank)
    if (fork() == 0) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
      if (kind == "job-without-one" && rank == size - 1) setenv("NCCL_FALCON", "0", 1);
      if (kind == "job-told") std::exit(toldRank(shared, rank, size, span));
      if (kind == "job-missed-split") std::exit(rankThatMissesASplit(shared, rank, size, span));
      std::exit(rankOfJob(shared, rank, size, span, kind));
    }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status != 0;
  return failed;
}

int entriesOf(const char* path) {
  int entries = 0;
  DIR* const folder = opendir(path);
  while (const dirent* const entry = readdir(folder)) entries += entry->d_name[0] != '.';
  closedir(folder);
  return entries;
}

int threadCount() {
  return entriesOf("/proc/self/task");
}

void idle() {
  ncclUniqueId id;
  DO(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  DO(ncclCommInitRank(&comm, 1, id, 0));
  DO(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream));
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  const auto stateOf = [&](const char* file) { return text.find(file) == std::string::npos ? "not loaded" : "loaded"; };
  std::printf("%d thread(s), core %s, profiler %s\n", threadCount(), stateOf("libnccl-falcon-core.so"),
              stateOf("libnccl-profiler-falcon.so"));
  if (const char* const fake = std::getenv("FAKE_PROFILER")) {
    void* const library = dlopen(fake, RTLD_LAZY | RTLD_NOLOAD);
    const auto log =
        library ? reinterpret_cast<falcon::test::FakeProfilerLog* (*)()>(dlsym(library, "fakeProfilerLog")) : nullptr;
    std::printf("%d init(s) of another, %s\n", log ? +log()->inits : 0,
                log && !log()->take().empty() ? "told" : "untold");
  }
  DO(ncclCommDestroy(comm));
}

/// Where a program has each handle on the heap, as frameworks do.
void unused(int count, bool moved) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  DO(ncclGetUniqueId(&id));
  DO(ncclCommInitRank(&comm, 1, id, 0));
  DO(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream));
  for (int i = 0; i < count && moved; ++i) DO(ncclCommDestroy(splitByHelper(comm, 0, 0)));
  for (int i = 0; i < count && !moved; ++i) {
    const auto child = std::make_unique<ncclComm_t>();
    DO(ncclGroupStart());
    DO(ncclCommSplit(comm, 0, 0, child.get(), nullptr));
    DO(ncclGroupEnd());
    DO(ncclCommDestroy(*child));
  }
  // Its own, the network's and the job's; that of a child ends a moment after it.
  constexpr int most = 5;
  const auto begun = std::chrono::steady_clock::now();
  while (threadCount() > most && std::chrono::steady_clock::now() - begun < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::printf("%s\n", threadCount() > most ? "threads are left" : "no threads are left");
  DO(ncclCommDestroy(comm));
}

void ended(int count) {
  constexpr int most = 40;  // of what is being made or ended just now
  const auto descriptors = [] { return entriesOf("/proc/self/fd"); };
  int before = 0;
  for (int i = 0; i <= count; ++i) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    DO(ncclGetUniqueId(&id));
    DO(ncclCommInitRank(&comm, 2, id, 0));
    DO(ncclCommDestroy(comm));
    if (i == 0) before = descriptors();
  }
  const auto begun = std::chrono::steady_clock::now();
  while (descriptors() > before + most && std::chrono::steady_clock::now() - begun < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::printf("%s\n", descriptors() > before + most ? "descriptors are left" : "no descriptors are left");
}

void showId() {
  ncclUniqueId id;
  DO(ncclGetUniqueId(&id));
  for (const char byte : id.internal) std::printf("%02x", static_cast<unsigned char>(byte));
  std::puts("");
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
  if (what == "idle-elsewhere" && chdir("/") != 0) return 1;
  if (what.starts_with("idle")) return idle(), 0;
  if (what == "extension") return extension(), 0;
  if (what == "id") return showId(), 0;
  if (what.starts_with("unused") && argc > 2) return unused(std::atoi(argv[2]), what == "unused-moved"), 0;
  if (what == "ended" && argc > 2) return ended(std::atoi(argv[2])), 0;
  if (what.starts_with("job") && argc > 3) return job(std::atoi(argv[2]), std::atof(argv[3]), what);
  return 2;
}
