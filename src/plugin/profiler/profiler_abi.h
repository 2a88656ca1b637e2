// What all versions of NCCL's profiler plugin interface have in common, written from its documented facts. Plain C
// types: plugins that are built here include these headers too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "plugin/plugin_abi.h"

namespace falcon::plugin {

/// Kinds of events: bits of the mask by which a plugin says which ones it wants, and an event's type.
enum EventBit : std::uint32_t {
  groupEvent = 1U << 0,  ///< the launch of a group's work on one communicator
  collectiveEvent = 1U << 1,
  messageEvent = 1U << 2,    ///< a send or receive
  proxyOpEvent = 1U << 3,    ///< a channel's traffic with one peer in one direction
  proxyStepEvent = 1U << 4,  ///< one chunk of it
  proxyControlEvent = 1U << 5,
  kernelChannelEvent = 1U << 6,  ///< a channel's work
  netPluginEvent = 1U << 7,
  groupApiEvent = 1U << 8,  ///< from ncclGroupStart to the end of ncclGroupEnd
  collectiveApiEvent = 1U << 9,
  messageApiEvent = 1U << 10,
  kernelLaunchEvent = 1U << 11,
  copyEngineEvent = 1U << 12,
  copyEngineSyncEvent = 1U << 13,
  copyEngineBatchEvent = 1U << 14,
  kernelPhaseEvent = 1U << 15,
};
/// Those that version 4, 5, 6 and 7 know.
inline constexpr std::uint32_t eventsOfV4 = 0xff, eventsOfV5 = 0xfff, eventsOfV6 = 0x7fff, eventsOfV7 = 0xffff;

/// The bits of a mask any of which makes NCCL tell events of this type: a child's makes its parents be told too.
/// 0: no type that is known.
constexpr std::uint32_t bitsThatTell(std::uint64_t type) {
  constexpr std::uint32_t below =
      proxyOpEvent | proxyStepEvent | kernelChannelEvent | netPluginEvent | kernelPhaseEvent;
  constexpr std::uint32_t copies = copyEngineEvent | copyEngineSyncEvent | copyEngineBatchEvent;
  switch (type) {
    case groupEvent:
      return groupEvent | collectiveEvent | messageEvent | below;
    case collectiveEvent:
      return collectiveEvent | below;
    case messageEvent:
      return messageEvent | below;
    case proxyOpEvent:
      return proxyOpEvent | proxyStepEvent | netPluginEvent;
    case proxyStepEvent:
      return proxyStepEvent | netPluginEvent;
    case groupApiEvent:
      return groupApiEvent | collectiveApiEvent | messageApiEvent | kernelLaunchEvent | groupEvent | collectiveEvent |
             messageEvent | below | copies;
    case collectiveApiEvent:
      return collectiveApiEvent | collectiveEvent | below | copies;
    case messageApiEvent:
      return messageApiEvent | messageEvent | below;
    case kernelChannelEvent:
      return kernelChannelEvent | kernelPhaseEvent;
    case copyEngineEvent:
      return copies;
    case proxyControlEvent:
    case netPluginEvent:
    case kernelLaunchEvent:
    case copyEngineSyncEvent:
    case copyEngineBatchEvent:
    case kernelPhaseEvent:
      return static_cast<std::uint32_t>(type);
    default:
      return 0;
  }
}

/// What an event has come to. Numbers of versions before 4 are left out.
enum class EventState : int {
  sendGpuWait = 8,   ///< of a step that sends: the data are not there yet
  sendWait = 9,      ///< they are on their way
  receiveWait = 10,  ///< of a step that receives: nothing has come yet
  receiveFlushWait = 11,
  receiveGpuWait = 12,  ///< it has, and is being used
  controlIdle = 13,
  controlActive = 14,
  controlSleep = 15,
  controlWakeup = 16,
  controlAppend = 17,
  controlAppendEnd = 18,
  proxyOpInProgress = 19,
  sendPeerWait = 20,  ///< of a step that sends: the receiver has no room
  netPluginUpdate = 21,
  kernelChannelStop = 22,
  groupStartApiStop = 23,
  groupEndApiStart = 24,
  copyEngineStart = 25,
  copyEngineComplete = 26,
  copyEngineSyncStart = 27,
  copyEngineSyncComplete = 28,
  copyEngineBatchStart = 29,
  copyEngineBatchComplete = 30,
  kernelPhaseStop = 31,
};

/// What comes with a state; which member, the state says.
union StateArguments {
  struct {
    std::size_t transferred;  ///< bytes
  } proxyStep;
  struct {
    int appended;
  } proxyControl;
  struct {
    void* data;
  } netPlugin;
  struct {
    std::uint64_t timer;  ///< nanoseconds of the GPU's clock
  } kernelChannel;
};

// Of an event's description, by its type. What versions do not have alike carries the version in which it began.
struct GroupApi {
  bool graphCaptured;
  int depth;  ///< 1: not in a group of the application's
};
struct KernelLaunch {
  void* stream;
};
struct ProxyOp {
  pid_t process;
  std::uint8_t channel;
  int peer;
  int steps;
  int chunkBytes;
  int sends;
};
struct ProxyStep {
  int step;
};
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t timer;
};
struct NetPluginEvent {
  std::int64_t id;
  void* data;
};

}  // namespace falcon::plugin
