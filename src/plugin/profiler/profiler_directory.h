// The profiler plugin of this process, and a communicator's use of it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/profiler/profiler_calls.h"
#include "plugin/single_plugin.h"

namespace falcon::plugin {

/// A communicator's use of the plugin: ends with the last who holds it. Thread-safe as far as the plugin is. What the
/// plugin answers to an event never reaches the job: an event that it refuses has no handle.
class ProfilerSession {
 public:
  ProfilerSession(const ProfilerCalls& calls, void* context, const ProfiledCommunicator& communicator, int& mask)
      : calls_(calls), context_(context), rank_(communicator.rank), mask_(mask) {}
  ~ProfilerSession();
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;

  /// What the plugin wants now: bits of EventBit. One relaxed load; the plugin may change it at any time.
  std::uint32_t mask() const {
    return static_cast<std::uint32_t>(std::atomic_ref(mask_).load(std::memory_order_relaxed));
  }
  int rank() const { return rank_; }
  const ProfilerCalls& calls() const { return calls_; }

  /// The plugin's handle of the event; null: it has none, or this plugin's version does not know such events.
  void* start(const Event& event) const;
  void stop(void* handle) const {
    if (handle) static_cast<void>(calls_.stop(handle));
  }
  void state(void* handle, EventState state, StateArguments arguments = {}) const {
    if (handle) static_cast<void>(calls_.state(handle, state, &arguments));
  }

 private:
  const ProfilerCalls& calls_;  // in the directory, which lasts
  void* const context_;
  const int rank_;
  int& mask_;  // in the directory
  const int process_ = ownProcess();

  static int ownProcess();
};

/// Thread-safe. Lives at least as long as its sessions, and as long as the plugin may write its mask: for ever.
class ProfilerDirectory {
 public:
  /// @param name      of a plugin; "" or "none": no plugin
  /// @param variable  which it was set by
  ProfilerDirectory(const char* variable, std::string name) : plugin_(profilerKind, variable, std::move(name)) {}
  /// By NCCL_PROFILER_PLUGIN.
  ProfilerDirectory();

  /// A new communicator's; null where there is no plugin, or none that is sound: why is said once, and the plugin is
  /// not tried again.
  std::shared_ptr<const ProfilerSession> open(const ProfiledCommunicator& communicator);

 private:
  std::mutex mutex_;
  SinglePlugin<ProfilerCalls> plugin_;
  int mask_ = 0;
};

/// This process's; a forked child has one of its own.
ProfilerDirectory& processProfiler();

}  // namespace falcon::plugin
