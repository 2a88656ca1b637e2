#include "collectives/group_driver.h"

#include "collectives/patience.h"

namespace falcon::collectives {

Status drive(GroupRun& run, transport::Waiter& waiter, std::span<HoldPoint* const> holds, bool patient) {
  std::vector<transport::WaitSource> sources;
  Patience patience(false);
  while (!run.finished()) {
    waiter.prepare();
    for (HoldPoint* hold : holds) hold->pass();
    if (run.progress() || run.finished()) {
      patience.reset();
      continue;
    }
    // What is published on a board rings nobody who is awake: so look often before sleeping, and say so.
    const bool boards = run.waitsAtBoards();
    if (boards && patient && patience.again()) continue;
    sources.clear();
    run.appendWaitSources(sources);
    if (!boards) {
      if (patient)
        waiter.wait(sources, longestSleep);
      else
        waiter.sleep(sources, longestSleep);
      continue;
    }
    run.announceSleep();
    const bool moved = run.progress() || run.finished();
    if (!moved) waiter.sleep(sources, longestSleep);
    run.withdrawSleep();
    if (moved) patience.reset();
  }
  return run.outcome();
}

}  // namespace falcon::collectives
