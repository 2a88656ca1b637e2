// Undoes something when its owner lets go of it, however the owner ends: also by SIGKILL.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/owned.h"
#include "base/result.h"

namespace falcon::tools {

/// A small process of its own, in a session of its own, that waits for the owner to release it or to die.
/// Start it before doing what it shall undo: from then on the undoing is certain. The work runs in the guardian
/// process, on a copy of the owner's memory.
class Guardian {
 public:
  struct Work {
    std::function<void()> undo;
    /// Called over and over while the owner holds on; returns the wait until the next time. Null: only wait.
    std::function<Nanoseconds()> step;
    /// A descriptor that the guardian keeps open until it has undone; -1: none.
    int kept = -1;
  };
  static Result<Guardian> start(Work work);

  Guardian(Guardian&&) = default;
  Guardian& operator=(Guardian&&) = delete;
  ~Guardian() { release(); }

  pid_t process() const { return process_; }
  /// Somebody has killed it: the owner must undo, and does so in release().
  bool isGone() const;
  /// Has the work undone and waits until it is. Does nothing the second time.
  void release();

 private:
  Guardian(pid_t process, FileDescriptor lifeline, std::function<void()> undo);

  pid_t process_;
  FileDescriptor lifeline_;  // the guardian acts when the last copy of it is closed
  std::function<void()> undo_;
};

}  // namespace falcon::tools
