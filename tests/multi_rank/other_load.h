// What other programs take of this machine while a job runs: a job whose share changes becomes slower or faster itself.
#pragma once

#include <unistd.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "inject/processor_use.h"
#include "multi_rank/run_harness.h"

namespace falcon::tests {

/// Cores that this machine uses for other things than the job's ranks, on average since the object was made or asked.
class OtherLoad {
 public:
  explicit OtherLoad(const tools::JobDescription& job) {
    for (const auto& rank : job.ranks) ranks_.emplace_back(rank.process);
  }
  double cores() {
    const auto now = std::chrono::steady_clock::now();
    const double busy = busyTicks();
    const std::chrono::duration<double> elapsed = now - start_;
    double cores = (busy - busy_) / static_cast<double>(::sysconf(_SC_CLK_TCK)) / elapsed.count();
    for (auto& rank : ranks_) {
      cores -= rank.cores().value_or(0);
      rank.restart();
    }
    busy_ = busy;
    start_ = now;
    return cores;
  }

 private:
  static double busyTicks() {
    std::istringstream stat(contentOf("/proc/stat"));
    std::string cpu;
    double user = 0, nice = 0, system = 0;
    stat >> cpu >> user >> nice >> system;
    return user + nice + system;
  }

  double busy_ = busyTicks();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<tools::ProcessorUse> ranks_;
};

}  // namespace falcon::tests
