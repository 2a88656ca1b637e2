#include "collectives/direct_one_sided.h"

namespace falcon::collectives {

using transport::SignalBoard;

void DirectOneSided::openWindow(std::uint64_t number, const void* address, std::size_t bytes) {
  // Where too many are open, only ncclPutSignal minds, and says so.
  (void)signals().openWindow(number, address, bytes);
}

void DirectOneSided::closeWindow(std::uint64_t number) {
  signals().closeWindow(number);
}

std::uint64_t DirectOneSided::signalsFrom(Rank peer, int kind) const {
  return signals().signalsFrom(peer, kind);
}

Status DirectOneSided::send(const char* function, const OneSidedMessage& message) {
  if (message.window != 0) {
    SignalBoard::Window window;
    const auto isKnown = [&] {
      window = signals().window(message.peer, message.window);
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
    // Its memory may be somebody else's by now.
    if (hasLeftInOrder(message.peer)) return member_->fail(hasLeftError(function, message.peer));
    const auto* const from = static_cast<const std::byte*>(message.from);
    const Status put = member_->direct->write(message.peer, window.address + message.offset, from, message.bytes);
    if (!put) return member_->fail(put.error());
  }
  if (hasLeftInOrder(message.peer)) return member_->fail(hasLeftError(function, message.peer));
  signals().signal(message.peer, message.kind);
  return {};
}

}  // namespace falcon::collectives
