// How one rank's one-sided messages reach the windows of the others: straight into their memory, or over connections.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "base/result.h"
#include "base/types.h"
#include "collectives/group_driver.h"
#include "collectives/local_member.h"
#include "transport/signal_kind.h"

namespace falcon::collectives {

/// `bytes` may be 0: then there is only the signal.
struct OneSidedMessage {
  const void* from = nullptr;
  std::size_t bytes = 0;
  Rank peer = -1;
  std::uint64_t window = 0;  ///< its number; see OneSided
  std::size_t offset = 0;    ///< bytes from the beginning of the peer's window
  int kind = 0;              ///< of the signal
};

/// All ranks of a communicator use the same one. One thread at a time registers, and one at a time sends and waits.
class OneSidedWay {
 public:
  /// Both outlive it.
  OneSidedWay(LocalMember& member, transport::Waiter& waiter) : member_(&member), waiter_(&waiter) {}
  virtual ~OneSidedWay() = default;
  OneSidedWay(const OneSidedWay&) = delete;

  /// See OneSided.
  virtual void openWindow(std::uint64_t number, const void* address, std::size_t bytes) = 0;
  virtual void closeWindow(std::uint64_t number) = 0;
  virtual Status send(const char* function, const OneSidedMessage& message) = 0;
  /// Signals of this kind so far. What came with them can be seen.
  virtual std::uint64_t signalsFrom(Rank peer, int kind) const = 0;

  /// Blocks until `holds()`, which depends on `peer`.
  template <class Condition>
  Status until(const char* function, Rank peer, Condition holds);

 protected:
  /// What it did before it left counts. `hasLeft()` is true also of who gave up, which is told elsewhere.
  virtual bool hasLeft(Rank peer) const = 0;
  virtual bool hasLeftInOrder(Rank peer) const { return hasLeft(peer); }
  /// Between the two, whatever `peer` does that could be waited for rings this process's doorbell.
  virtual void announceSleep(Rank) {}
  virtual void withdrawSleep() {}

  Error hasLeftError(const char* function, Rank peer) const {
    return log::decided(Error::remote("{}: rank {} has left the communicator", function, peer));
  }

  LocalMember* member_;
  transport::Waiter* waiter_;
};

template <class Condition>
Status OneSidedWay::until(const char* function, Rank peer, Condition holds) {
  static constexpr transport::WaitSource source{.kind = transport::WaitSource::Kind::doorbell};
  Patience patience(member_->direct && member_->direct->coresSuffice());
  for (;;) {
    if (member_->hooks.hold) member_->hooks.hold->pass();
    if (const Status healthy = member_->health(); !healthy) return healthy;
    // What it did before it left counts.
    const bool left = hasLeftInOrder(peer);
    if (holds()) return {};
    if (left)
      return member_->fail(
          log::decided(Error::remote("{}: rank {} has left the communicator while it was waited for", function, peer)));
    if (patience.again()) continue;
    // The ticket comes before the last look at what else could end the wait.
    waiter_->prepare();
    if (const Status healthy = member_->health(); !healthy) return healthy;
    announceSleep(peer);
    if (!holds() && !hasLeft(peer)) waiter_->sleep({&source, 1}, longestSleep);
    withdrawSleep();
  }
}

}  // namespace falcon::collectives
