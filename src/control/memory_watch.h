// When the controller hears anew what memory a process has left.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/memory_left.h"
#include "control/messages.h"

namespace falcon::control {

/// Used by one thread. Reads every five seconds, and says only what has changed by a sixteenth: frameworks take most of
/// their memory in the first iterations, and little afterwards.
class MemoryWatch {
 public:
  using Read = std::function<std::vector<MemoryPool>()>;

  explicit MemoryWatch(Read read = memoryPoolsOfThisProcess) : read_(std::move(read)) {}

  /// What is to be said now, if anything. Throws where there is no memory for it.
  std::optional<MemoryKnown> look(Nanoseconds now);
  /// For a new controller; nothing: nothing was said.
  const std::optional<MemoryKnown>& said() const { return said_; }

 private:
  bool isAsSaid(const std::vector<MemoryPool>& pools) const;

  const Read read_;
  std::optional<Nanoseconds> readAt_;
  std::optional<MemoryKnown> said_;
};

}  // namespace falcon::control
