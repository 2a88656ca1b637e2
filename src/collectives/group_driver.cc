#include "collectives/group_driver.h"

namespace falcon::collectives {
namespace {

// A failure rings the doorbell; this only bounds what a lost ring costs.
constexpr Nanoseconds longestSleep = 100ms;

}  // namespace

Status drive(GroupRun& run, transport::Waiter& waiter, std::span<HoldPoint* const> holds) {
  std::vector<transport::WaitSource> sources;
  while (!run.finished()) {
    waiter.prepare();
    for (HoldPoint* hold : holds) hold->passWait();
    if (run.progress() || run.finished()) continue;
    sources.clear();
    run.appendWaitSources(sources);
    waiter.wait(sources, longestSleep);
  }
  return run.outcome();
}

}  // namespace falcon::collectives
