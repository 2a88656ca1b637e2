// What the vendor's library tells our profiler plugin, as the job's: transfers go where those of the host engine go.
// The plugin is a library of its own, which the vendor's has taken (vendors_profiler.h).
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "base/recorders.h"
#include "instrument/call_log.h"
#include "plugin/profiler/outlet.h"

namespace falcon::control {

/// Calls themselves are logged around the vendor's functions; here they get the names that they have in the log, in
/// that function and in the thread that has called it (handed_calls.h). What is launched otherwise, such as a captured
/// graph each time or a nonblocking communicator's group, stands for no call and is left out. One a process.
/// Thread-safe: transfers come from the vendor's threads.
class VendorEvents final : public profiler::WatchedOutlet {
 public:
  /// Throws std::bad_alloc.
  static VendorEvents& ofProcess();
  /// Null: the vendor's library has not taken our plugin. One load.
  static VendorEvents* asked() { return asked_.load(std::memory_order_acquire); }
  /// In a forked child, where nothing of the parent's is used.
  static void childBegins() { asked_.store(nullptr); }

  /// Of this process, which has one; what is told goes there until it ends.
  void jobBegins(TransferRecorder& transfers, instrument::CallLog& log) noexcept;
  /// When it returns nothing goes there any more. Another one may have begun.
  void jobEnds(const TransferRecorder& transfers) noexcept;

  /// Calls are about to go to the vendor: events are told from now on while `transfers` wants them, and none else.
  void beforeCalls(const TransferRecorder* transfers, Nanoseconds now) noexcept;

  void ask(profiler::EventChoice& choice) noexcept override;
  int joined(const plugin::ProfiledCommunicator& communicator) noexcept override;
  void left(const plugin::ProfiledCommunicator& communicator) noexcept override;
  std::optional<Flight> enter(CallRecord& call, int place) noexcept override;
  void label(const LabelledCall&) noexcept override {}
  void leave(Flight, const CallRecord&) noexcept override {}
  void transfer(const TransferTiming& timing) noexcept override;
  void ownWork(const TransferTiming& timing) noexcept override;

 private:
  /// A communicator of the vendor's, as its profiler knows it.
  struct Known {
    std::uint64_t vendorsId = 0;
    Rank rank = -1;
    int size = 0;
    CommunicatorId communicator = 0;  ///< as Falcon calls it; 0: no call has shown which it is
  };
  void choose(const TransferRecorder* transfers);

  static std::atomic<VendorEvents*> asked_;

  std::atomic<bool> profiles_{false};
  std::atomic<Nanoseconds::rep> refreshedAt_{0};
  std::mutex choiceMutex_;
  profiler::EventChoice* choice_ = nullptr;  ///< with choiceMutex_
  std::mutex mutex_;                         ///< of all below
  TransferRecorder* transfers_ = nullptr;    ///< null: there is no job
  instrument::CallLog* log_ = nullptr;
  std::map<int, Known> known_;  ///< by the place that the plugin has
  int nextPlace_ = 0;
};

}  // namespace falcon::control
