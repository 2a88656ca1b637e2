// What a profiler plugin is told of the calls of a group, in the order in which NCCL tells it (its profiler's page in
// its sources): the group of the API, in it its calls; then, for each communicator, the group that is launched and in
// it the calls again, which end when they are launched. What moves their data is told while it does.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/call.h"
#include "base/engine.h"
#include "collectives/profiled_transfers.h"

namespace falcon::collectives {

/// The calls of the API: from the group's start to the end of its run. One thread.
class ProfiledApi {
 public:
  explicit ProfiledApi(std::span<const Submission> submissions) : submissions_(submissions) {}
  ~ProfiledApi();
  ProfiledApi(const ProfiledApi&) = delete;
  ProfiledApi& operator=(const ProfiledApi&) = delete;

  /// Of the call of that index: `session` is its communicator's. In the order of the calls; all before launch().
  ProfiledCall add(std::size_t index, const plugin::ProfilerSession* session);
  /// The group's end has come.
  void launch();

 private:
  void begin(const plugin::ProfilerSession& session);

  const std::span<const Submission> submissions_;
  const plugin::ProfilerSession* session_ = nullptr;  // the first's; the group's event is told there
  void* event_ = nullptr;
};

/// How a call is run, for the plugin.
struct ProfiledWay {
  int channels = 0;
  const char* algorithm = "";
};

/// What is launched for one communicator, from the first of its calls to close(). One thread.
class ProfiledLaunch {
 public:
  ~ProfiledLaunch() { close(); }
  ProfiledLaunch() = default;
  ProfiledLaunch(ProfiledLaunch&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)),
        event_(std::exchange(other.event_, nullptr)),
        calls_(std::move(other.calls_)) {}
  ProfiledLaunch& operator=(ProfiledLaunch&&) = delete;

  /// `profiled.event` is the API's at first, and then the call's own. `number`: among the communicator's calls of this
  /// operation.
  void launch(ProfiledCall& profiled, const Call& call, std::uint64_t number, const ProfiledWay& way);
  /// All of it is on its way.
  void close();

 private:
  const plugin::ProfilerSession* session_ = nullptr;
  void* event_ = nullptr;
  std::vector<void*> calls_;
};

/// A channel's work for one call: from the first thing that any of its tasks does until the last of them has gone.
/// Shared by them; one thread.
class ProfiledChannel {
 public:
  ProfiledChannel(const ProfiledCall& call, int channel) : call_(call), channel_(channel) {}
  ~ProfiledChannel();
  ProfiledChannel(const ProfiledChannel&) = delete;
  ProfiledChannel& operator=(const ProfiledChannel&) = delete;

  int channel() const { return channel_; }
  void begin();

 private:
  const ProfiledCall call_;
  const int channel_;
  bool begun_ = false;
  void* event_ = nullptr;
};

}  // namespace falcon::collectives
