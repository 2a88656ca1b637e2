#include "collectives/one_sided.h"

#include "base/log.h"
#include "collectives/group_driver.h"
#include "collectives/local_member.h"

namespace falcon::collectives {

using transport::SignalBoard;

Status OneSided::possible(const char* function) const {
  if (member_->direct && member_->direct->signals()) return {};
  const char* const why = member_->shape.size < 2                        ? "the communicator has one rank"
                          : member_->shape.place != Place::node          ? "its ranks are on several nodes"
                          : !SignalBoard::existsFor(member_->shape.size) ? "it has too many ranks (64 at most)"
                                                                         : "its ranks may not (NCCL_P2P_DISABLE?)";
  return log::decided(
      Error::invalidUsage("{}: on host memory a rank writes directly into another one's memory on its node, and {}; "
                          "use ncclSend and ncclRecv",
                          function, why));
}

std::uint64_t OneSided::openWindow(const void* address, std::size_t bytes) {
  ++windows_;
  // Where too many are open, only ncclPutSignal minds, and says so.
  if (member_->direct && member_->direct->signals())
    (void)member_->direct->signals()->openWindow(windows_, address, bytes);
  return windows_;
}

void OneSided::closeWindow(std::uint64_t number) {
  if (member_->direct && member_->direct->signals()) member_->direct->signals()->closeWindow(number);
}

template <class Condition>
Status OneSided::until(const char* function, Rank peer, Condition holds) {
  static constexpr transport::WaitSource source{.kind = transport::WaitSource::Kind::doorbell};
  transport::NodeBoard& board = member_->direct->board();
  Patience patience(member_->direct->coresSuffice());
  for (;;) {
    if (member_->hooks.hold) member_->hooks.hold->pass();
    if (const Status healthy = member_->health(); !healthy) return healthy;
    // What it did before it left counts.
    const bool left = board.hasLeftInOrder(peer);
    if (holds()) return {};
    if (left)
      return member_->fail(
          log::decided(Error::remote("{}: rank {} has left the communicator while it was waited for", function, peer)));
    if (patience.again()) continue;
    // The ticket comes before the last look at what else could end the wait.
    waiter_->prepare();
    if (const Status healthy = member_->health(); !healthy) return healthy;
    board.announceSleep(transport::NodeBoard::awaitedMessage(peer));
    if (!holds() && !board.hasLeft(peer)) waiter_->sleep({&source, 1}, longestSleep);
    board.withdrawSleep();
  }
}

std::uint64_t& OneSided::taken(Rank peer, int kind) {
  if (taken_.empty()) taken_.resize(static_cast<std::size_t>(member_->shape.size) * SignalBoard::kinds);
  return taken_[static_cast<std::size_t>(peer) * SignalBoard::kinds + kind];
}

Status OneSided::send(const char* function, const OneSidedMessage& message) {
  if (const Status can = possible(function); !can) return can;
  if (const Status healthy = member_->health(); !healthy) return healthy;
  DirectMember& direct = *member_->direct;
  SignalBoard& board = *direct.signals();
  if (message.window != 0) {
    SignalBoard::Window window;
    const auto isKnown = [&] {
      window = board.window(message.peer, message.window);
      return window.state != SignalBoard::Window::State::awaited;
    };
    if (const Status known = until(function, message.peer, isKnown); !known) return known;
    if (window.state == SignalBoard::Window::State::closed)
      return log::decided(Error::invalidUsage(
          "{}: rank {} has given the window back, failed to register it, or has more than {} of them open", function,
          message.peer, SignalBoard::mostWindows));
    if (message.offset > window.bytes || message.bytes > window.bytes - message.offset)
      return log::decided(
          Error::invalidArgument("{}: {} bytes at offset {} do not fit into the window of rank {}, which has {}",
                                 function, message.bytes, message.offset, message.peer, window.bytes));
    const auto* const from = static_cast<const std::byte*>(message.from);
    const Status put = direct.write(message.peer, window.address + message.offset, from, message.bytes);
    if (!put) return member_->fail(put.error());
  }
  if (direct.board().hasLeftInOrder(message.peer))
    return member_->fail(log::decided(Error::remote("{}: rank {} has left the communicator", function, message.peer)));
  board.signal(message.peer, message.kind);
  return {};
}

Status OneSided::await(const char* function, std::span<const AwaitedSignals> signals) {
  if (const Status can = possible(function); !can) return can;
  if (const Status healthy = member_->health(); !healthy) return healthy;
  const SignalBoard& board = *member_->direct->signals();
  for (const AwaitedSignals& awaited : signals) {
    const std::uint64_t needed = taken(awaited.peer, awaited.kind) + awaited.count;
    const auto haveCome = [&] { return board.signalsFrom(awaited.peer, awaited.kind) >= needed; };
    if (const Status come = until(function, awaited.peer, haveCome); !come) return come;
    // One after another, so that several entries for one peer add up. Where a later one fails, the communicator is
    // broken, and nobody asks any more.
    taken(awaited.peer, awaited.kind) = needed;
  }
  return {};
}

}  // namespace falcon::collectives
