// How much this process has to do in an iteration, as the framework tells it: ncclFalconIterationWork.
#pragma once

#include <deque>

#include "base/clock.h"
#include "base/result.h"

namespace falcon::control {

/// The process's, whether Falcon is on or not. Numbers told in an iteration add up.
class ToldWork {
 public:
  /// Lock-free, from any thread. Invalid argument: it is no amount of work (NaN, infinite, 0 or less).
  static Status tell(double work);

  struct Told {
    Nanoseconds time{0};
    double work = 0;
  };
  /// Appends what was told from `next` on and moves `next`. False: some of it was overwritten meanwhile, and is left
  /// out. For the one reader of the process.
  static bool readFrom(std::uint64_t& next, std::deque<Told>& out);
  /// How much was told so far: where a reader begins.
  static std::uint64_t count() noexcept;
};

/// Gives every iteration the work that was told in it. Used by one thread.
class WorkSums {
 public:
  WorkSums() : next_(ToldWork::count()) {}

  /// Reads what was told since the last time. Before the calls are read: what was told before a call ended is then
  /// known.
  void read();
  /// Of the iteration [start, end]; what was told before belongs to none. 0: nothing was told, or not all of it is
  /// known.
  double take(Nanoseconds start, Nanoseconds end);

 private:
  std::uint64_t next_;
  std::deque<ToldWork::Told> waiting_;  // oldest first
  Nanoseconds lost_{-1};                // something told before this time was overwritten
};

}  // namespace falcon::control
