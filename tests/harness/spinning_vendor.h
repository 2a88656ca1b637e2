// What the processes of a job share that use spinning_vendor.cc, the stand-in whose kernels spin.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace falcon::harness {

inline constexpr int spinningRanks = 16;
inline constexpr int spinningCommunicators = 16;
inline constexpr int spinningElements = 16;  ///< 64-bit integers that a call moves at most
inline constexpr const char* spinningArenaVariable = "FALCON_SPINNING_ARENA";

/// Zero at first. Lies at the same address in all processes, which are forked from the one that made it.
struct SpinningArena {
  struct Data {
    std::size_t count;
    std::int64_t elements[spinningElements];
  };
  struct Member {
    std::atomic<std::uint64_t> started, ended;  ///< collectives, on the device
    Data input[2];                              ///< of the last two: nobody is further behind
    std::atomic<std::uint64_t> splits, splitsMade, splitsDone;
    int color, key, child;
  };
  struct Message {
    std::atomic<std::uint64_t> sent, taken;
    Data data;
  };
  struct Communicator {
    std::atomic<int> joined;
    Member members[spinningRanks];
    Message messages[spinningRanks][spinningRanks];  ///< from, to
  };
  std::atomic<int> used;
  Communicator communicators[spinningCommunicators];
  /// By the job's rank: calls that were enqueued, and those of them that are done.
  std::atomic<long> launched[spinningRanks], completed[spinningRanks];

  static long sum(const std::atomic<long> (&counts)[spinningRanks]) {
    long all = 0;
    for (const auto& count : counts) all += count.load();
    return all;
  }
};

/// Made before the ranks are forked; they find it by a variable of the environment.
class SharedArena {
 public:
  SharedArena() {
    void* memory = mmap(nullptr, sizeof(SpinningArena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    arena_ = new (memory) SpinningArena();
    char address[32];
    snprintf(address, sizeof address, "%p", memory);
    setenv(spinningArenaVariable, address, 1);
  }
  ~SharedArena() { munmap(arena_, sizeof(SpinningArena)); }
  SharedArena(const SharedArena&) = delete;
  SpinningArena* operator->() const { return arena_; }

 private:
  SpinningArena* arena_;
};

}  // namespace falcon::harness
