// One-sided messages: a rank writes into a window of another one's memory, which takes no part in it, and tells it by a
// signal. Inside a node, where ranks may read and write each other's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "transport/signal_board.h"

namespace falcon::transport {
class Waiter;
}

namespace falcon::collectives {

class LocalMember;

/// A signal's kind: `index` below SignalBoard::signalIndices, `context` below SignalBoard::contexts.
constexpr int signalKind(int index, int context) {
  return context * transport::SignalBoard::signalIndices + index;
}

/// `bytes` may be 0: then there is only the signal.
struct OneSidedMessage {
  const void* from = nullptr;
  std::size_t bytes = 0;
  Rank peer = -1;
  std::uint64_t window = 0;  ///< its number; see OneSided
  std::size_t offset = 0;    ///< bytes from the beginning of the peer's window
  int kind = 0;              ///< of the signal
};

struct AwaitedSignals {
  Rank peer = -1;
  int kind = 0;
  std::uint64_t count = 0;
};

/// One rank's part. Windows are numbered from 1: a rank registers its windows in the same order as the others, as NCCL
/// asks for. One thread at a time registers, and one at a time sends and waits.
class OneSided {
 public:
  OneSided(LocalMember& member, transport::Waiter& waiter) : member_(&member), waiter_(&waiter) {}

  /// Error (invalidUsage): not among these ranks, and why.
  Status possible(const char* function) const;

  /// The next window; it can be written to from now on. bytes 0: this rank has failed to register it. Does nothing
  /// where one-sided messages are not possible, nor where too many windows are open: who writes there is told.
  std::uint64_t openWindow(const void* address, std::size_t bytes);
  void closeWindow(std::uint64_t number);

  /// Writes, then signals; the buffer is the caller's again. Waits where the peer has not registered the window yet.
  /// Errors: invalidUsage (no such window there any more), invalidArgument (it is too short), those of a broken
  /// communicator.
  Status send(const char* function, const OneSidedMessage& message);
  /// Blocks until all these signals have come, beyond those that were waited for before. What came with them can be
  /// seen then. Errors: those of a broken communicator; remote (a rank has left before it sent them).
  Status await(const char* function, std::span<const AwaitedSignals> signals);

 private:
  /// Blocks until `holds()`, which depends on `peer`.
  template <class Condition>
  Status until(const char* function, Rank peer, Condition holds);
  std::uint64_t& taken(Rank peer, int kind);

  LocalMember* member_;
  transport::Waiter* waiter_;
  std::uint64_t windows_ = 0;         // registered so far
  std::vector<std::uint64_t> taken_;  // signals that were waited for, by peer and kind; empty before the first
};

}  // namespace falcon::collectives
