// What a process sleeps on while it waits for shared memory: one futex word that its peers ring.
#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "transport/shared_segment.h"

namespace falcon::transport {

/// Thread-safe, also between processes. Who waits takes a ticket first, then looks for work, then waits with the
/// ticket: a ring in between makes wait() return at once.
class Doorbell {
 public:
  /// A doorbell that others can open by name; without a name where shared memory is not permitted.
  static Result<std::unique_ptr<Doorbell>> create();
  static Result<std::unique_ptr<Doorbell>> open(const std::string& name);

  /// Wakes all waiters. A system call only when there are some.
  void ring();
  std::uint32_t ticket() const;
  /// Until a ring after `ticket` was taken, at most `limit`; may return early.
  void wait(std::uint32_t ticket, Nanoseconds limit);

  const std::string& name() const { return segment_.name(); }
  /// In a forked child: the parent's doorbell is no longer offered from here.
  void dropName() { segment_.dropName(); }

 private:
  struct Words {
    std::atomic<std::uint32_t> rings;
    std::atomic<std::uint32_t> waiters;
  };

  explicit Doorbell(SharedSegment segment);

  SharedSegment segment_;
  Words* words_;
};

/// This process's own doorbell; it lives until the process ends. A forked child has one of its own.
Doorbell& processDoorbell();
/// A random number of this process, at an address that stays; another in a forked child. Error (system): the kernel
/// gives none, so that this process cannot be told from others.
const Result<std::uint64_t>& processIdentity();

}  // namespace falcon::transport
