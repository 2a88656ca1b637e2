// One-sided messages: a rank writes into a window of another one's memory, which takes no part in it, and tells it by a
// signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "collectives/one_sided_way.h"

namespace falcon::collectives {

/// A signal's kind: `index` below transport::signalIndices, `context` below transport::signalContexts.
constexpr int signalKind(int index, int context) {
  return context * transport::signalIndices + index;
}

struct AwaitedSignals {
  Rank peer = -1;
  int kind = 0;
  std::uint64_t count = 0;
};

/// One rank's part. Windows are numbered from 1: a rank registers its windows in the same order as the others, as NCCL
/// asks for. One thread at a time registers, and one at a time sends and waits.
class OneSided {
 public:
  /// The member outlives it.
  OneSided(LocalMember& member, std::unique_ptr<OneSidedWay> way) : member_(&member), way_(std::move(way)) {}

  /// The next window; it can be written to from now on. bytes 0: this rank has failed to register it. Does nothing
  /// where too many windows are open: who writes there is told.
  std::uint64_t openWindow(const void* address, std::size_t bytes);
  /// When it returns, ranks over connections write there no more.
  void closeWindow(std::uint64_t number) { way_->closeWindow(number); }

  /// Writes, then signals; the buffer is the caller's again. Waits where the peer has not registered the window yet.
  /// Errors: invalidUsage (no such window there any more), invalidArgument (it is too short), those of a broken
  /// communicator.
  Status send(const char* function, const OneSidedMessage& message);
  /// Blocks until all these signals have come, beyond those that were waited for before. What came with them can be
  /// seen then. Errors: those of a broken communicator; remote (a rank has left before it sent them).
  Status await(const char* function, std::span<const AwaitedSignals> signals);

 private:
  std::uint64_t& taken(Rank peer, int kind);

  LocalMember* member_;
  const std::unique_ptr<OneSidedWay> way_;
  std::uint64_t windows_ = 0;         // registered so far
  std::vector<std::uint64_t> taken_;  // signals that were waited for, by peer and kind; empty before the first
};

}  // namespace falcon::collectives
