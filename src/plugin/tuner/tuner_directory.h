// The tuner plugin of this process, and a communicator's use of it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/single_plugin.h"
#include "plugin/tuner/tuner_calls.h"

namespace falcon::plugin {

/// A communicator's use of the plugin: ends with it. One thread at a time chooses.
class TunerSession {
 public:
  TunerSession(const TunerCalls& calls, void* context) : calls_(calls), context_(context) {}
  ~TunerSession();
  TunerSession(const TunerSession&) = delete;
  TunerSession& operator=(const TunerSession&) = delete;

  const TunerCalls& calls() const { return calls_; }
  /// Lets the plugin change the costs. Gives the channels that it wishes for, 0 for none; nothing where it returns an
  /// error: then `costs` may be anything, and the first error is told.
  std::optional<int> choose(TunedFunction function, std::size_t bytes, int operations, CostTable& costs) const;

 private:
  const TunerCalls& calls_;  // in the directory, which lasts
  void* const context_;
  mutable std::atomic<bool> told_{false};
  const int process_ = ownProcess();

  static int ownProcess();
};

/// Thread-safe. Lives at least as long as its sessions.
class TunerDirectory {
 public:
  /// @param name      of a plugin; "" or "none": no plugin
  /// @param variable  which it was set by
  TunerDirectory(const char* variable, std::string name) : plugin_(tunerKind, variable, std::move(name)) {}
  /// By NCCL_TUNER_PLUGIN.
  TunerDirectory();

  /// A new communicator's; null where there is no plugin, or none that is sound: why is said once, and the plugin is
  /// not tried again.
  std::unique_ptr<TunerSession> open(const TunedCommunicator& communicator);

 private:
  std::mutex mutex_;
  SinglePlugin<TunerCalls> plugin_;
};

/// This process's; a forked child has one of its own.
TunerDirectory& processTuner();

}  // namespace falcon::plugin
