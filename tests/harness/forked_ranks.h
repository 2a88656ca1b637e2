// Ranks as processes of their own: forked, watched, never left behind.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/rank_cgroups.h"

namespace falcon::test {

using Seconds = std::chrono::duration<double>;

/// How a rank ended.
struct RankOutcome {
  bool ended = false;  ///< false: it had to be killed because its time was up
  int exitCode = -1;   ///< -1: ended by a signal
  int signal = 0;
  std::string report;  ///< what its body returned
};

/// Children end with this object, and with this process. With FALCON_TEST_CGROUPS each is in a cpu cgroup of its own.
class ForkedRanks {
 public:
  /// Runs in the child; returns what is wrong, "" when all is right. gtest's own checks do not reach the parent from
  /// there.
  using Body = std::function<std::string(int rank)>;

  ForkedRanks(int ranks, const Body& body);
  ~ForkedRanks();
  ForkedRanks(const ForkedRanks&) = delete;

  pid_t pid(int rank) const { return children_[rank].pid; }
  void signal(int rank, int number) const;
  /// Waits for one rank, killing it when `limit` has passed. May be called again: then it says the same.
  const RankOutcome& wait(int rank, Seconds limit);
  /// All ranks returned "" within `limit`. Only hangs should meet it: sanitizers on a starved machine take a minute
  /// where half a second is usual.
  testing::AssertionResult allRight(Seconds limit = Seconds(150));

 private:
  struct Child {
    pid_t pid = -1;
    int reportPipe = -1;
    bool reaped = false;
    RankOutcome outcome;
  };

  std::unique_ptr<RankCgroups> cgroups_;
  std::vector<Child> children_;
};

/// Memory that all forked ranks share with the test: where they leave an id or tell how far they are.
class SharedBoard {
 public:
  struct Contents {
    std::atomic<int> steps[64];  ///< zero at first; by rank or as the test likes
    std::atomic<int> published[16];
    char ids[16][128];
  };

  SharedBoard();
  ~SharedBoard();
  SharedBoard(const SharedBoard&) = delete;

  Contents* operator->() const { return contents_; }
  void reach(int slot, int step) const { contents_->steps[slot].store(step); }
  /// False when `limit` passed first, which only hangs should meet.
  bool waitFor(int slot, int step, Seconds limit = Seconds(100)) const;

 private:
  Contents* contents_;
};

}  // namespace falcon::test
