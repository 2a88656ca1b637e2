#include "collectives/group_driver.h"

namespace falcon::collectives {

Status drive(GroupRun& run, const Waiting& waiting, std::span<HoldPoint* const> holds) {
  std::vector<transport::WaitSource> sources;
  Patience patience = waiting.patience(false);
  while (!run.finished()) {
    waiting.waiter.prepare();
    for (HoldPoint* hold : holds) hold->pass();
    if (run.progress() || run.finished()) {
      patience.reset();
      continue;
    }
    // What is published on a board rings nobody who is awake: so look often before sleeping, and say so.
    const bool boards = run.waitsAtBoards();
    if (boards && patience.again()) continue;
    sources.clear();
    run.appendWaitSources(sources);
    if (!boards) {
      waiting.wait(sources, longestSleep);
      continue;
    }
    run.announceSleep();
    const bool moved = run.progress() || run.finished();
    if (!moved) waiting.waiter.sleep(sources, longestSleep);
    run.withdrawSleep();
    if (moved) patience.reset();
  }
  return run.outcome();
}

}  // namespace falcon::collectives
