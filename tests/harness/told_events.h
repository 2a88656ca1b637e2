// The call-backs that NCCL makes to a profiler plugin for one collective and one message, in its documented order: a
// stand-in for a vendor's library, which no machine without a GPU runs.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "plugin/profiler/profiler_calls.h"

namespace falcon::test {

/// One communicator of such a library.
class ToldCommunicator {
 public:
  ToldCommunicator(const plugin::ProfilerCalls& calls, const plugin::ProfiledCommunicator& facts, int& mask)
      : calls_(calls), facts_(facts), mask_(mask) {
    result = calls_.init(facts_, &context_, &mask_);
  }
  ~ToldCommunicator() {
    if (result == plugin::success) static_cast<void>(calls_.finalize(context_));
  }
  ToldCommunicator(const ToldCommunicator&) = delete;
  ToldCommunicator& operator=(const ToldCommunicator&) = delete;

  struct Transfer {
    int channel = 0;
    int peer = 1;
    bool sends = true;
    int steps = 2;
    std::size_t stepBytes = 1000;
    std::chrono::milliseconds waiting{0}, moving{0};  ///< of each step
  };
  static constexpr std::uint64_t deviceClock = 1'000'000'000'000;  ///< how far the device's clock is ahead

  /// A call, as the profiler is told of it.
  struct Told {
    void* event = nullptr;
    std::uint32_t mask = 0;  ///< of when it was launched
  };

  /// An AllReduce of a group of its own; `channels` of them run, then the transfer if there is one.
  void allReduce(std::size_t count, int channels, const Transfer* transfer = nullptr, std::uint64_t tag = 0) {
    follow(launch("AllReduce", count, "ncclFloat32", -1, channels, tag), channels, transfer);
  }
  /// A message of a group of its own.
  void send(std::size_t count, int peer) { launch("Send", count, "ncclInt8", peer, 1); }

  /// What NCCL tells in the thread that calls.
  Told launch(const char* function, std::size_t count, const char* type, int peer, int channels,
              std::uint64_t tag = 0) {
    const std::uint32_t mask = maskNow();
    const std::string_view name = function;
    const bool message = name == "Send" || name == "Recv";
    void* api = start({.type = plugin::groupApiEvent, .groupApi = {.graphCaptured = false, .depth = 1}}, mask);
    state(api, plugin::EventState::groupStartApiStop);
    plugin::Event call{.type = message ? plugin::messageApiEvent : plugin::collectiveApiEvent, .parent = api};
    if (message)
      call.messageApi = {.function = function, .count = count, .type = type, .tag = tag};
    else
      call.collectiveApi = {.function = function, .count = count, .type = type, .root = peer, .tag = tag};
    void* called = start(call, mask);
    stop(called);
    state(api, plugin::EventState::groupEndApiStart);
    stop(start({.type = plugin::kernelLaunchEvent, .parent = api}, mask));
    void* group = start({.type = plugin::groupEvent}, mask);
    plugin::Event event{
        .type = message ? plugin::messageEvent : plugin::collectiveEvent, .parent = called, .rank = facts_.rank};
    if (message)
      event.message = {.function = function,
                       .type = type,
                       .count = count,
                       .peer = peer,
                       .channels = static_cast<std::uint8_t>(channels),
                       .group = group,
                       .tag = tag};
    else
      event.collective = {.number = told_++,
                          .function = function,
                          .count = count,
                          .root = peer,
                          .type = type,
                          .channels = static_cast<std::uint8_t>(channels),
                          .algorithm = "RING",
                          .protocol = "SIMPLE",
                          .group = group,
                          .tag = tag};
    const Told told{start(event, mask), mask};
    stop(told.event);
    stop(group);
    stop(api);
    return told;
  }

  /// What the proxy's and the profiler's threads tell later.
  void follow(const Told& told, int channels, const Transfer* transfer) {
    for (int channel = 0; channel < channels; ++channel) kernel(told.event, channel, told.mask);
    if (transfer) move(told.event, *transfer, told.mask);
  }

  plugin::ResultCode result = plugin::internalError;

 private:
  static std::uint64_t deviceNow() {
    return static_cast<std::uint64_t>(SystemClock::instance().now().count()) + deviceClock;
  }
  std::uint32_t maskNow() const { return static_cast<std::uint32_t>(std::atomic_ref(mask_).load()); }

  void* start(plugin::Event event, std::uint32_t mask) {
    if ((mask & plugin::bitsThatTell(event.type)) == 0 || (event.type & calls_.knownEvents()) == 0) return nullptr;
    void* handle = nullptr;
    static_cast<void>(calls_.start(context_, &handle, event));
    return handle;
  }
  void stop(void* handle) {
    if (handle) static_cast<void>(calls_.stop(handle));
  }
  void state(void* handle, plugin::EventState state, plugin::StateArguments arguments = {}) {
    if (handle) static_cast<void>(calls_.state(handle, state, &arguments));
  }

  void kernel(void* collective, int channel, std::uint32_t mask) {
    plugin::Event event{.type = plugin::kernelChannelEvent, .parent = collective, .rank = facts_.rank};
    event.kernelChannel = {static_cast<std::uint8_t>(channel), deviceNow()};
    void* kernel = start(event, mask);
    plugin::Event phase{.type = plugin::kernelPhaseEvent, .parent = kernel, .rank = facts_.rank};
    phase.kernelPhase = {static_cast<std::uint8_t>(channel), plugin::KernelPhase::initialSync, "initial_sync",
                         deviceNow()};
    void* waits = start(phase, mask);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    plugin::StateArguments arguments{};
    arguments.kernelChannel.timer = deviceNow();
    state(waits, plugin::EventState::kernelPhaseStop, arguments);
    stop(waits);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    arguments.kernelChannel.timer = deviceNow();
    state(kernel, plugin::EventState::kernelChannelStop, arguments);
    stop(kernel);
  }

  void move(void* collective, const Transfer& transfer, std::uint32_t mask) {
    plugin::Event event{.type = plugin::proxyOpEvent, .parent = collective, .rank = facts_.rank};
    event.proxyOp = {.process = getpid(),
                     .channel = static_cast<std::uint8_t>(transfer.channel),
                     .peer = transfer.peer,
                     .steps = transfer.steps,
                     .chunkBytes = static_cast<int>(transfer.stepBytes),
                     .sends = transfer.sends ? 1 : 0};
    void* operation = start(event, mask);
    state(operation, plugin::EventState::proxyOpInProgress);
    plugin::StateArguments arguments{};  // the size of the step before, until this one's is known: as NCCL
    for (int number = 0; number < transfer.steps; ++number) {
      plugin::Event step{.type = plugin::proxyStepEvent, .parent = operation, .rank = facts_.rank};
      step.proxyStep = {number};
      void* moved = start(step, mask);
      if (transfer.sends) state(moved, plugin::EventState::sendGpuWait, arguments);
      state(moved, transfer.sends ? plugin::EventState::sendPeerWait : plugin::EventState::receiveWait, arguments);
      std::this_thread::sleep_for(transfer.waiting);
      arguments.proxyStep.transferred = transfer.stepBytes;
      state(moved, transfer.sends ? plugin::EventState::sendWait : plugin::EventState::receiveFlushWait, arguments);
      std::this_thread::sleep_for(transfer.moving);
      if (!transfer.sends) state(moved, plugin::EventState::receiveGpuWait, arguments);
      stop(moved);
    }
    stop(operation);
  }

  const plugin::ProfilerCalls& calls_;
  const plugin::ProfiledCommunicator facts_;
  int& mask_;
  void* context_ = nullptr;
  std::uint64_t told_ = 0;
};

}  // namespace falcon::test
