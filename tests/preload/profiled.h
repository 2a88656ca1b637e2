// What the stand-in for the vendor's library tells a profiler plugin, as NCCL does from 2.27 on: where it finds one,
// and in which thread it tells what.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "front/interposed.h"
#include "harness/told_events.h"

namespace falcon::test {

/// Of one communicator. VENDOR_PROFILER_VERSION is the newest version of the interface that it knows, 4 to 7; 0: none.
class Profiled {
 public:
  Profiled(int rank, int size);
  /// Waits for the proxies.
  ~Profiled();

  /// `function`: as NCCL's without "nccl". In the thread that calls; a group's at its end.
  void launch(const char* function, std::size_t count, ncclDataType_t type, int peer);

 private:
  void tell(const char* function, std::size_t count, const char* type, int peer);

  const int rank_, size_;
  std::unique_ptr<ToldCommunicator> told_;
  std::vector<std::thread> proxies_;
};

/// Calls that were told of, and those that were not, since nobody wanted to know.
int callsTold();
int callsUntold();

}  // namespace falcon::test
