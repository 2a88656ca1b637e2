// What becomes of the events that NCCL tells a profiler plugin: calls and transfers, as Falcon's call log has them. The
// same for every version of the interface, which adapters (profiler_v4.cc ...) translate to and from the newest.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/profiler/outlet.h"
#include "plugin/profiler/profiler_directory.h"
#include "profiler/slots.h"

namespace falcon::profiler {

/// The events that tell of calls, and those that tell of what moves their data.
inline constexpr std::uint32_t callEvents = plugin::collectiveEvent | plugin::messageEvent;
inline constexpr std::uint32_t channelEvents =
    plugin::proxyOpEvent | plugin::proxyStepEvent | plugin::kernelChannelEvent | plugin::kernelPhaseEvent;

/// Times of a GPU's clock as times of this host's. NCCL tells a time of the GPU's after it, sooner or later: the
/// soonest shows how far the clocks are apart, but for the way. Thread-safe.
class DeviceClock {
 public:
  /// `device`, a time of the GPU's, is told at `now`.
  void note(Nanoseconds device, Nanoseconds now);
  Nanoseconds toHost(Nanoseconds device) const { return device + Nanoseconds(offset_.load(std::memory_order_relaxed)); }

 private:
  static constexpr std::int64_t unknown = INT64_MAX;
  std::atomic<std::int64_t> offset_{unknown};
};

/// Thread-safe. An event that comes from another process (PXN) has no parent here. Where another plugin is chained, it
/// is told all that it asks for, with handles of its own.
class Observer {
 public:
  /// @param outlet   null: nothing is observed, only a chained plugin is told
  /// @param chained  the other plugin; it finds none where there is none. Both outlive the observer.
  /// @param wanted   as of want()
  Observer(Outlet* outlet, plugin::ProfilerDirectory& chained, std::uint32_t wanted);

  plugin::ResultCode init(const plugin::ProfiledCommunicator& communicator, void** context, int* mask);
  plugin::ResultCode start(void* context, void** handle, const plugin::Event& event) noexcept;
  plugin::ResultCode stop(void* handle) noexcept;
  plugin::ResultCode state(void* handle, plugin::EventState state, plugin::StateArguments* arguments) noexcept;
  plugin::ResultCode finalize(void* context);

  /// Which events NCCL is to tell from now on, beside those that the chained plugin wants. Any thread.
  void want(std::uint32_t events);
  /// A chained plugin may have changed its mind: from time to time.
  void refreshMask();
  /// Events that there was no slot for.
  std::uint64_t missed() const { return missed_.load(std::memory_order_relaxed); }

 private:
  struct Communicator {
    plugin::ProfiledCommunicator facts;
    std::string name;
    int* mask = nullptr;  // NCCL's
    int place = noPlace;
    std::shared_ptr<const plugin::ProfilerSession> chained;
    std::atomic<std::uint64_t> collectives{0};
    std::mutex mutex;
    std::map<std::pair<Operation, Rank>, std::uint64_t> messages;  // so far; with mutex
  };
  /// One event; used by one thread at a time, but for its parents, of which children read what does not change.
  struct Event {
    std::uint64_t type = 0;
    Communicator* communicator = nullptr;
    void* chained = nullptr;
    Event* parent = nullptr;
    CallRecord call;  // of a collective or message
    Flight flight = noFlight;
    bool observed = false;                                             // and is to be told to the outlet
    TransferTiming timing;                                             // of a proxy operation or a channel
    plugin::EventState state = plugin::EventState::proxyOpInProgress;  // of a step
    Nanoseconds since{0};                                              // its beginning
    std::uint64_t bytes = 0;                                           // of a step
    int moving = 0, waiting = 0;                                       // of a proxy operation: steps that do just now
    Nanoseconds counted{0};                                            // until when that is in its timing
  };
  static constexpr std::size_t callSlots = 8192, pieceSlots = 8192;

  /// What NCCL knows a communicator by.
  using Context = std::atomic<Communicator*>;
  static constexpr std::size_t contextSlots = 4096;

  /// With mutex_. Null: all are in use.
  Context* freeContext();
  /// Null where the context is none of a communicator of this process that is still open: NCCL tells events of proxies
  /// with the context that their communicator has in another process (PXN), or of one that is finalized.
  Communicator* communicatorAt(void* context) const;
  Communicator* communicatorOf(void* context, const plugin::Event& event, const Event* parent) const;
  Event* parentOf(const plugin::Event& event) const;
  Event* known(void* handle) const;
  void give(Event* event);
  void tellChained(Event& own, const plugin::Event& event) noexcept;
  void observe(Event& own, const plugin::Event& event);
  void enterCall(Event& own, const plugin::Event& event);
  void beginTiming(Event& own, int channel, Rank peer, bool sending);
  void endStep(Event& step, Nanoseconds now);
  static void count(Event& operation, Nanoseconds now);
  void changeStep(Event& step, plugin::EventState state, std::uint64_t bytes, Nanoseconds now);
  void endObserved(Event& own) noexcept;

  Outlet* const outlet_;
  plugin::ProfilerDirectory& chained_;
  std::atomic<std::uint32_t> wanted_;
  const int process_;
  DeviceClock deviceClock_;
  std::atomic<std::uint64_t> missed_{0};

  mutable std::mutex mutex_;
  std::map<void*, std::unique_ptr<Communicator>> communicators_;  // with mutex_; NCCL's context is the key
  std::array<Context, contextSlots> contexts_{};
  std::size_t nextContext_ = 0;  // with mutex_: one after the other, so that an old one is known as such for long
  // Made with the first communicator whose events anybody wants.
  std::unique_ptr<Slots<Event, callSlots>> calls_;    // groups and calls, which are parents later
  std::unique_ptr<Slots<Event, pieceSlots>> pieces_;  // what moves their data
};

}  // namespace falcon::profiler
