// What Falcon does around the vendor's calls: counts them as entered, holds the caller while the job is held, and
// writes them into the call log. The vendor's functions return long before the device is done.
#pragma once

#include <optional>
#include <vector>

#include "base/calling_thread.h"
#include "base/counter_clock.h"
#include "base/entered_calls.h"
#include "control/handed_calls.h"
#include "control/vendor_events.h"
#include "front/core_functions.h"
#include "preload/directory.h"

namespace falcon::preload {

/// Of one thread: the call or the group that it is in. A group's calls are forwarded at once; they are counted, held
/// and logged as a whole at its outermost end.
class WatchedCalls final : public control::HandedCalls {
 public:
  static WatchedCalls& ofThisThread();

  bool inGroup() const { return depth_ > 0; }
  /// What is to follow: nothing, leave(), or no call at all, since the communicator ended while the caller was held.
  enum class Begun { untold, told, refused };
  /// `use` may be empty: then nothing is kept of the call.
  Begun begin(Directory::Use use, const front::WatchedCall& call);
  void leave(ncclResult_t result);

  void groupStarted() {
    if (depth_++ == 0) hasOthers_ = false;
  }
  /// Before the vendor's GroupEnd, and after it; only the outermost counts. True: a communicator of the group is about
  /// to end, while the caller was held; the vendor has to drop the group, and may until groupEnded().
  bool groupEnds();
  void groupEnded(ncclResult_t result);
  void groupDropped();
  /// In a forked child.
  void forget();

 private:
  struct Open {
    Open() {}  // NOLINT(modernize-use-equals-default): a defaulted one is zeroed first, which takes 15 ns of a call
    Directory::Use use;
    void* stream = nullptr;
    const Watch* watch = nullptr;  ///< null: it is only counted
    std::optional<CallLabels> labels;
    LoggedCall logged;  ///< its record is the call, and has its number once it was entered
    bool told = false;  ///< to the vendor's profiler

    const CallRecord& counted() const { return logged.record; }
    CallCounts& counts() const { return (*use).counts(); }
    bool isCalledOff() const noexcept { return (*use).isToEnd(); }
  };

  /// What the thread enters, as who holds it sees it.
  class Event;

  void enter();
  void letThemEnd();
  static bool spins(const Open& open);
  void add(Directory::Use use, const front::WatchedCall& call);
  void clear();
  std::optional<Named> find(const control::ToldCall& told) override;
  void chooseEvents(control::VendorEvents& events);
  void aboutToLaunch();
  void noteLaunched();

  CallingThread& thread_ = CallingThread::own();
  CounterClock<> clock_;
  int depth_ = 0;
  std::vector<Open> open_;
  std::optional<EnteredCalls<Open>> entered_;  ///< of open_, from the entry on
  gpu::TimedLaunch launch_;                    ///< from the entry on, where the device's time is taken
  Nanoseconds enteredAt_{0};
  HoldPoint* hold_ = nullptr;  ///< of the job that watches some of open_; null: none does
  bool launches_ = false;      ///< some of open_ are for others too
  bool keepsThem_ = false;     ///< the communicators of open_ from ending: a group was held
  bool dropped_ = false;       ///< the group is, see groupEnds()
  bool hasOthers_ = false;     ///< the group has calls of which nothing is kept
  int nextTold_ = 0;           ///< in open_, most likely
};

}  // namespace falcon::preload
