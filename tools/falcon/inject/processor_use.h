// How much of the processors a rank uses, seen from outside.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"

namespace falcon::tools {

/// Counts the processor time of a rank: of its process and all that it started.
/// A child that came and went between two readings is missed.
class ProcessorUse {
 public:
  explicit ProcessorUse(pid_t process) : process_(process) { restart(); }

  /// From now on.
  void restart();
  /// Cores used on average since the last restart; nothing where the process is gone.
  std::optional<double> cores() const;

 private:
  std::optional<Nanoseconds> used() const;

  pid_t process_;
  Nanoseconds usedAtStart_{0};
  Nanoseconds start_{0};
};

}  // namespace falcon::tools
