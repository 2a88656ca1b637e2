// What tests may ask a fake profiler plugin (fake_profiler.cc) after the fact, and how events are written down.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugin/profiler/profiler_v7.h"

namespace falcon::test {

/// Of one library in one process. `fakeProfilerLog()`, exported by it, gives its own.
struct FakeProfilerLog {
  std::atomic<int> inits{0};
  std::atomic<int> finalizes{0};
  std::atomic<int> open{0};  ///< events that have started and not stopped
  std::mutex mutex;
  std::vector<std::string> lines;
  std::string name;  ///< of the last communicator; "null": it had none

  std::vector<std::string> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(lines, {});
  }
};

inline std::string nameOfEvent(std::uint64_t type) {
  constexpr const char* names[] = {
      "group",     "collective",     "message",     "op",     "step", "control",   "channel",    "net",
      "group-api", "collective-api", "message-api", "launch", "copy", "copy-sync", "copy-batch", "phase"};
  for (int bit = 0; bit < 16; ++bit)
    if (type == 1U << bit) return names[bit];
  return "?";
}

/// "collective 3 in 2: AllReduce 0 of 100 ncclFloat32 by RING on 1": a number for each event, in the order of starts.
inline std::string startLine(const plugin::Event& event, int number, int parent) {
  std::string line = nameOfEvent(event.type) + " " + std::to_string(number);
  if (parent > 0) line += " in " + std::to_string(parent);
  const auto text = [](const char* words) { return std::string(words ? words : "null"); };
  switch (event.type) {
    case plugin::groupApiEvent:
      return line + ": depth " + std::to_string(event.groupApi.depth);
    case plugin::collectiveApiEvent:
      return line + ": " + text(event.collectiveApi.function) + " of " + std::to_string(event.collectiveApi.count) +
             " " + text(event.collectiveApi.type);
    case plugin::messageApiEvent:
      return line + ": " + text(event.messageApi.function) + " of " + std::to_string(event.messageApi.count) + " " +
             text(event.messageApi.type);
    case plugin::collectiveEvent:
      return line + ": " + text(event.collective.function) + " " + std::to_string(event.collective.number) + " of " +
             std::to_string(event.collective.count) + " " + text(event.collective.type) + " by " +
             text(event.collective.algorithm) + " on " + std::to_string(event.collective.channels);
    case plugin::messageEvent:
      return line + ": " + text(event.message.function) + " of " + std::to_string(event.message.count) + " with " +
             std::to_string(event.message.peer) + " on " + std::to_string(event.message.channels);
    case plugin::proxyOpEvent:
      return line + ": channel " + std::to_string(event.proxyOp.channel) +
             (event.proxyOp.sends != 0 ? " to " : " from ") + std::to_string(event.proxyOp.peer);
    case plugin::proxyStepEvent:
      return line + ": " + std::to_string(event.proxyStep.step);
    case plugin::kernelChannelEvent:
      return line + ": " + std::to_string(event.kernelChannel.channel);
    default:
      return line;
  }
}

}  // namespace falcon::test
