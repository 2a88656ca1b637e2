// What a rank does to show how far computing and exchanging overlap on a host stream:
//   overlap_probe FILE compute|sleep     starts once FILE exists; rank 0 prints one JSON line
// In turn, and several times: computes, exchanges without a stream, exchanges on a stream, and does both at once. The
// amount of computing is set so that it takes as long as the exchange, which is where overlapping gains most. With
// "sleep" it only lets that time pass, as one does who waits for a disk: nothing depends on how busy the machine is.
#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "nccl_falcon.h"

namespace {

constexpr int rounds = 5;
constexpr std::size_t bytes = std::size_t{24} << 20;
constexpr std::size_t buckets = 4;

double secondsOf(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void require(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "overlap_probe: %s\n", ncclGetLastError(nullptr));
  std::fflush(nullptr);
  ::_exit(1);
}

/// Work within the caches, in units of about a tenth of a millisecond.
class Computation {
 public:
  explicit Computation(bool sleeps) : sleeps_(sleeps) {}
  void run(long units) {
    if (sleeps_) return std::this_thread::sleep_for(units * std::chrono::microseconds(100));
    for (long unit = 0; unit < units; ++unit)
      for (int row = 0; row < size; ++row)
        for (int inner = 0; inner < size; ++inner) {
          const float factor = a_[row * size + inner];
          for (int column = 0; column < size; ++column) c_[row * size + column] += factor * b_[inner * size + column];
        }
    std::fill(c_.begin(), c_.end(), 0.0F);
  }

 private:
  static constexpr int size = 128;
  const bool sleeps_;
  std::vector<float> a_ = std::vector<float>(size * size, 0.5F), b_ = a_, c_ = a_;
};

class Probe {
 public:
  Probe(int rank, int size, bool sleeps) : rank_(rank), gradients_(bytes / sizeof(float), 1.0F), computation_(sleeps) {
    ncclUniqueId id;
    require(ncclGetUniqueId(&id));
    require(ncclCommInitRank(&comm_, size, id, rank));
    require(ncclFalconStreamCreate(&stream_));
  }
  ~Probe() {
    require(ncclFalconStreamDestroy(stream_));
    require(ncclCommDestroy(comm_));
  }

  void run() {
    (void)exchangeSeconds(nullptr);  // makes the connections
    const double exchange = agreed(exchangeSeconds(nullptr));
    const double thousand = agreed(computeSeconds(1000));
    const long units = std::max(1L, static_cast<long>(1000 * exchange / thousand));
    std::vector<double> computes, exchanges, togethers, cores;
    for (int round = 0; round < rounds; ++round) {
      computes.push_back(agreed(computeSeconds(units)));
      exchanges.push_back(agreed(exchangeSeconds(nullptr)));
      const double before = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
      const double onStream = exchangeSeconds(stream_);
      cores.push_back((secondsOf(CLOCK_PROCESS_CPUTIME_ID) - before) / onStream);
      togethers.push_back(agreed(bothSeconds(units)));
    }
    if (rank_ != 0) return;
    const double compute = median(computes), exchanged = median(exchanges), together = median(togethers);
    std::printf(
        "{\"compute\": %.4f, \"exchange\": %.4f, \"together\": %.4f, \"ofTheLonger\": %.3f, \"coreOfAnExchange\": "
        "%.3f}\n",
        compute, exchanged, together, together / std::max(compute, exchanged), median(cores));
  }

 private:
  void queue(ncclFalconStream_t stream) {
    const std::size_t count = gradients_.size() / buckets;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      float* at = gradients_.data() + bucket * count;
      require(ncclAllReduce(at, at, count, ncclFloat, ncclMax, comm_, stream));
    }
  }
  /// From a moment when all ranks are there.
  template <class Work>
  double timed(Work&& work) {
    agreed(0);
    const double start = secondsOf(CLOCK_MONOTONIC);
    work();
    return secondsOf(CLOCK_MONOTONIC) - start;
  }
  double computeSeconds(long units) {
    return timed([&] { computation_.run(units); });
  }
  double exchangeSeconds(ncclFalconStream_t stream) {
    return timed([&] {
      queue(stream);
      require(ncclFalconStreamSynchronize(stream));
    });
  }
  double bothSeconds(long units) {
    return timed([&] {
      queue(stream_);
      computation_.run(units);
      require(ncclFalconStreamSynchronize(stream_));
    });
  }
  /// The longest of all ranks.
  double agreed(double seconds) {
    require(ncclAllReduce(&seconds, &seconds, 1, ncclDouble, ncclMax, comm_, nullptr));
    return seconds;
  }
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  const int rank_;
  std::vector<float> gradients_;
  Computation computation_;
  ncclComm_t comm_ = nullptr;
  ncclFalconStream_t stream_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ::setenv("NCCL_COMM_ID", (std::string(std::getenv("MASTER_ADDR")) + ":" + std::getenv("MASTER_PORT")).c_str(), 1);
  while (::access(argv[1], F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Probe(std::atoi(std::getenv("RANK")), std::atoi(std::getenv("WORLD_SIZE")), std::string(argv[2]) == "sleep").run();
  return 0;
}
