// A program that is linked to the vendor's library and ends communicators, or itself, while other threads use them.
//   ending_program exit    main() returns while a thread is in call after call; a late destructor calls Destroy
//   ending_program abort   a communicator is aborted while a call on it is held; says what that call gave
//   ending_program abort-group   the same of a group with calls on it and on another one; says what becomes of the next
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "front/interposed.h"
#include "preload/vendor.h"

namespace {

char in[64], out[64];

ncclComm_t alone() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess)
    std::puts("no communicator");
  return comm;
}

ncclResult_t call(ncclComm_t comm) {
  return ncclAllReduce(in, out, 8, ncclFloat, ncclSum, comm, nullptr);
}

/// Made before the first call of NCCL's, so destroyed after all that that has made.
struct Owner {
  ncclComm_t comm = nullptr;
  ~Owner() {
    if (comm && ncclCommDestroy(comm) != ncclSuccess) std::puts("a late Destroy failed");
  }
} owner;

int exitInsideCalls() {
  owner.comm = alone();
  std::thread([comm = alone()] {
    while (call(comm) == ncclSuccess) {
    }
    std::puts("a call failed");
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return 0;
}

ncclResult_t group(ncclComm_t comm, ncclComm_t other) {
  if (ncclGroupStart() != ncclSuccess) std::puts("GroupStart failed");
  for (const ncclComm_t each : {comm, other})
    if (call(each) != ncclSuccess) std::puts("a call of a group failed");
  return ncclGroupEnd();
}

/// What only the stand-in for the vendor's library has. Before ours it is the one that this program is linked to.
bool usesWhatIsGone() {
  const char* const driven = std::getenv("NCCL_FALCON_VENDOR_LIBRARY");
  void* const vendor = driven ? dlopen(driven, RTLD_NOW | RTLD_NOLOAD) : RTLD_DEFAULT;
  const auto take = reinterpret_cast<decltype(&vendorTakeLog)>(dlsym(vendor, "vendorTakeLog"));
  std::string log(1 << 20, '\0');
  take(log.data(), log.size());
  return log.find("communicator is gone") != std::string::npos;
}

int abortWhileHeld(bool grouped) {
  const auto suspend = reinterpret_cast<decltype(&ncclFalconSuspend)>(dlsym(RTLD_DEFAULT, "ncclFalconSuspend"));
  const auto resume = reinterpret_cast<decltype(&ncclFalconResume)>(dlsym(RTLD_DEFAULT, "ncclFalconResume"));
  if (!suspend || !resume) return 1;
  const ncclComm_t world = alone(), other = alone();
  std::atomic<ncclResult_t> given{ncclSuccess}, next{ncclSuccess};
  std::atomic<bool> lastIsDue{false};
  std::thread calls([&] {
    while (given == ncclSuccess) given = grouped ? group(other, world) : call(other);
    lastIsDue.wait(false);
    next = group(world, world);
  });
  ncclResult_t held = ncclInvalidUsage;  // until Falcon watches the communicator
  for (int i = 0; i < 1000 && held != ncclSuccess; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    held = suspend(world, 5000);
  }
  std::printf("held: %d\n", held);
  if (ncclCommAbort(other) != ncclSuccess) std::puts("Abort failed");
  while (given == ncclSuccess) std::this_thread::yield();
  // The others are held all the while.
  if (resume(world) != ncclSuccess) std::puts("Resume failed");
  lastIsDue = true;
  lastIsDue.notify_one();
  calls.join();
  std::printf("the call: %d, the next group: %d\n", given.load(), next.load());
  if (usesWhatIsGone()) std::puts("the vendor was given what is gone");
  ncclCommDestroy(world);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "exit") return exitInsideCalls();
  if (what.starts_with("abort")) return abortWhileHeld(what == "abort-group");
  return 2;
}
