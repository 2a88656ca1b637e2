// Where what our profiler plugin observes goes: to a call log of its own, or to the job of Falcon's library that
// watches the vendor's calls in the same process, which is another library.
#pragma once

#include <optional>

#include "base/call.h"
#include "base/recorders.h"
#include "base/transfer.h"
#include "plugin/profiler/profiler_calls.h"

namespace falcon::profiler {

/// How much is to be observed: calls, or what moves their data too.
enum class Depth : std::uint8_t { nothing, calls, channels };

/// Told by the threads of NCCL that make calls or move data. Thread-safe.
class Outlet {
 public:
  virtual ~Outlet() = default;

  /// A communicator of this process. Gives where it is kept, for enter(); noPlace where it is not.
  virtual int joined(const plugin::ProfiledCommunicator& communicator) noexcept = 0;
  virtual void left(const plugin::ProfiledCommunicator& communicator) noexcept = 0;

  /// A call is handed to the device, and then has been: it is not done yet. May call it by other names: communicator
  /// and number. Nothing: the call is none that is observed, and so is nothing that belongs to it.
  virtual std::optional<Flight> enter(CallRecord& call, int place) noexcept = 0;
  virtual void label(const LabelledCall& call) noexcept = 0;
  virtual void leave(Flight flight, const CallRecord& call) noexcept = 0;

  /// What a connection has moved.
  virtual void transfer(const TransferTiming& timing) noexcept = 0;
  /// A channel's own work: `peer` is the rank itself, and there are no bytes.
  virtual void ownWork(const TransferTiming& timing) noexcept = 0;
};

/// By whom NCCL is made to tell events. Thread-safe.
class EventChoice {
 public:
  virtual ~EventChoice() = default;
  /// From now on.
  virtual void want(Depth depth) noexcept = 0;
  /// From time to time: a plugin that is chained may have changed its mind.
  virtual void refresh() noexcept = 0;
};

/// Of the library that watches the calls of this process.
class WatchedOutlet : public Outlet {
 public:
  /// Who is told from now on how much is to be observed, nothing at first; lives as long as the process.
  virtual void ask(EventChoice& choice) noexcept = 0;
};

/// That of the process which asks; null: there is no memory for it. It lives as long as the process.
using GetWatchedOutlet = WatchedOutlet* (*)() noexcept;
/// What the plugin exports for that library: where things go from the next communicator on. False: the plugin is of
/// another build (`build`: FALCON_BUILD of both).
using ServeWatched = bool (*)(const char* build, GetWatchedOutlet get);
inline constexpr const char* serveWatchedName = "ncclFalconServeWatched";

}  // namespace falcon::profiler
