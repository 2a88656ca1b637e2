#include "tune/rank_part.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

#include "host_unique_id.h"
#include "nccl.h"

namespace falcon::tune {
namespace {

using collectives::algorithmsFor;
using collectives::Extent;
using collectives::TuningLine;

constexpr int rounds = 5;
constexpr std::size_t fewestBytes = 64;
constexpr std::size_t stepFactor = 4;

void must(ncclResult_t result) {
  if (result != ncclSuccess)
    throw std::runtime_error(fmt::format("{}: {}", ncclGetErrorString(result), ncclGetLastError(nullptr)));
}

int number(const char* name) {
  const char* text = std::getenv(name);
  if (!text) throw std::runtime_error(fmt::format("{} is not set: this part is started by falcon tune", name));
  return std::atoi(text);
}

/// Communicator k uses each operation's k-th algorithm, as a tuning file of its own tells it.
class RankPart {
 public:
  explicit RankPart(const RankOptions& options)
      : options_(options), rank_(number("RANK")), ranks_(number("WORLD_SIZE")) {
    const char* address = std::getenv("MASTER_ADDR");
    setenv("NCCL_COMM_ID", fmt::format("{}:{}", address ? address : "127.0.0.1", number("MASTER_PORT")).c_str(), 1);
    ncclUniqueId id;
    must(tools::hostUniqueId(id));
    must(ncclCommInitRank(&base_, ranks_, id, rank_));
    std::size_t most = 0;
    for (int i = 0; i < operationCount; ++i)
      most = std::max(most, algorithmsFor(static_cast<Operation>(i), options_.extent).size());
    for (std::size_t k = 0; k < most; ++k) communicators_.push_back(communicatorFor(k));
    send_.resize(options_.mostBytes / sizeof(float), 1.F);
    receive_.resize(options_.mostBytes / sizeof(float), 0.F);
  }
  ~RankPart() {
    for (const ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
    if (base_) ncclCommDestroy(base_);
  }
  RankPart(const RankPart&) = delete;
  RankPart& operator=(const RankPart&) = delete;

  void run() {
    std::ofstream file;
    if (rank_ == 0) file.open(samplesPath(options_.folder), std::ios::app);
    for (int i = 0; i < operationCount; ++i) {
      const auto operation = static_cast<Operation>(i);
      const auto algorithms = algorithmsFor(operation, options_.extent);
      if (algorithms.size() < 2) continue;
      for (std::size_t bytes = fewestBytes; bytes <= options_.mostBytes; bytes *= stepFactor) {
        const auto times = measure(operation, bytes, algorithms.size());
        for (std::size_t k = 0; k < algorithms.size() && file.is_open(); ++k)
          file << i << ' ' << static_cast<int>(options_.extent) << ' ' << ranks_ << ' ' << bytes << ' ' << algorithms[k]
               << ' ' << times[k] << '\n';
      }
    }
    if (rank_ == 0 && !file.flush()) throw std::runtime_error(samplesPath(options_.folder) + " cannot be written");
  }

 private:
  ncclComm_t communicatorFor(std::size_t k) {
    const std::string path = fmt::format("{}/candidate.{}.{}", options_.folder, k, getpid());
    if (rank_ == 0) {
      std::ofstream file(path);
      for (int i = 0; i < operationCount; ++i) {
        const auto names = algorithmsFor(static_cast<Operation>(i), options_.extent);
        if (names.empty()) continue;
        file << format(TuningLine{static_cast<Operation>(i), options_.extent, 2, 0,
                                  std::numeric_limits<std::size_t>::max(), names[std::min(k, names.size() - 1)]})
             << '\n';
      }
      file.close();
      setenv("NCCL_FALCON_TUNING_FILE", path.c_str(), 1);  // rank 0's counts
    }
    ncclComm_t made = nullptr;
    must(ncclCommSplit(base_, 0, rank_, &made, nullptr));
    if (rank_ == 0) unlink(path.c_str());
    return made;
  }

  /// `bytes` as the tables count: the larger of a rank's two buffers.
  void call(Operation operation, std::size_t bytes, ncclComm_t communicator) {
    const std::size_t whole = bytes / sizeof(float);
    const std::size_t block = std::max<std::size_t>(1, whole / static_cast<std::size_t>(ranks_));
    const float* send = send_.data();
    float* receive = receive_.data();
    switch (operation) {
      case Operation::allReduce:
        return must(ncclAllReduce(send, receive, whole, ncclFloat, ncclSum, communicator, nullptr));
      case Operation::reduce:
        return must(ncclReduce(send, receive, whole, ncclFloat, ncclSum, 0, communicator, nullptr));
      case Operation::broadcast:
        return must(ncclBroadcast(send, receive, whole, ncclFloat, 0, communicator, nullptr));
      case Operation::allGather:
        return must(ncclAllGather(send, receive, block, ncclFloat, communicator, nullptr));
      case Operation::reduceScatter:
        return must(ncclReduceScatter(send, receive, block, ncclFloat, ncclSum, communicator, nullptr));
      case Operation::allToAll:
        return must(ncclAlltoAll(send, receive, block, ncclFloat, communicator, nullptr));
      case Operation::gather:
        return must(ncclGather(send, receive, block, ncclFloat, 0, communicator, nullptr));
      case Operation::scatter:
        return must(ncclScatter(send, receive, block, ncclFloat, 0, communicator, nullptr));
      case Operation::send:
      case Operation::receive:
        break;
    }
  }

  double slowest(double value) {
    double highest = 0;
    must(ncclAllReduce(&value, &highest, 1, ncclDouble, ncclMax, base_, nullptr));
    return highest;
  }

  /// Seconds on the slowest rank; all start together.
  double timed(Operation operation, std::size_t bytes, ncclComm_t communicator, long times) {
    slowest(0);
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < times; ++i) call(operation, bytes, communicator);
    return slowest(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  /// Calls that take a third of the budget or more, warm.
  long callsFor(Operation operation, std::size_t bytes, ncclComm_t communicator) {
    timed(operation, bytes, communicator, 1);
    for (long times = 1;; times *= 2)
      if (timed(operation, bytes, communicator, times) >= options_.seconds / 3) return times;
  }

  /// Each algorithm's median, microseconds a call. They take turns, so that what the machine does meanwhile hits all.
  std::vector<double> measure(Operation operation, std::size_t bytes, std::size_t algorithms) {
    std::vector<long> calls;
    for (std::size_t k = 0; k < algorithms; ++k) calls.push_back(callsFor(operation, bytes, communicators_[k]));
    std::vector<std::vector<double>> times(algorithms);
    for (int round = 0; round < rounds; ++round)
      for (std::size_t k = 0; k < algorithms; ++k)
        times[k].push_back(timed(operation, bytes, communicators_[k], calls[k]) * 1e6 / static_cast<double>(calls[k]));
    std::vector<double> medians;
    for (auto& one : times) {
      std::nth_element(one.begin(), one.begin() + rounds / 2, one.end());
      medians.push_back(one[rounds / 2]);
    }
    return medians;
  }

  const RankOptions options_;
  const int rank_, ranks_;
  ncclComm_t base_ = nullptr;
  std::vector<ncclComm_t> communicators_;
  std::vector<float> send_, receive_;
};

}  // namespace

std::string samplesPath(const std::string& folder) {
  return folder + "/samples";
}

std::vector<Sample> readSamples(const std::string& folder) {
  std::ifstream file(samplesPath(folder));
  std::vector<Sample> samples;
  int operation = 0, extent = 0;
  for (Sample one; file >> operation >> extent >> one.ranks >> one.bytes >> one.algorithm >> one.microseconds;) {
    one.operation = static_cast<Operation>(operation);
    one.extent = static_cast<Extent>(extent);
    samples.push_back(one);
  }
  return samples;
}

void runRankPart(const RankOptions& options) {
  RankPart(options).run();
}

}  // namespace falcon::tune
