#include "transport/signal_board.h"

#include "transport/node_board.h"

namespace falcon::transport {

SignalBoard::Entry* SignalBoard::find(Rank owner, std::uint64_t number, std::uint64_t wanted) const {
  for (std::uint64_t i = 0; i < mostWindows; ++i) {
    Entry& theirs = windows(owner).entries[(number + i) % mostWindows];
    if (theirs.number.load(std::memory_order_seq_cst) == wanted) return &theirs;
  }
  return nullptr;
}

bool SignalBoard::openWindow(std::uint64_t number, const void* address, std::size_t bytes) {
  Entry* const free = find(self_, number, 0);
  if (free && bytes > 0) {
    free->address.store(reinterpret_cast<std::uintptr_t>(address), std::memory_order_relaxed);
    free->bytes.store(bytes, std::memory_order_relaxed);
    free->number.store(number, std::memory_order_release);
  }
  // The same word for all; each of them may sleep for it.
  for (Rank rank = 0; rank < ranks_; ++rank) board_->publishTo(rank, windows(self_).registered, number);
  return free != nullptr;
}

void SignalBoard::closeWindow(std::uint64_t number) {
  if (Entry* const mine = find(self_, number, number)) mine->number.store(0, std::memory_order_seq_cst);
}

SignalBoard::Window SignalBoard::window(Rank owner, std::uint64_t number) const {
  Window found;
  if (windows(owner).registered.load(std::memory_order_seq_cst) < number) return found;
  found.state = Window::State::closed;
  const Entry* const theirs = find(owner, number, number);
  if (!theirs) return found;
  found.address = theirs->address.load(std::memory_order_acquire);
  found.bytes = theirs->bytes.load(std::memory_order_acquire);
  // Another window may have taken the place while this one was read.
  if (theirs->number.load(std::memory_order_seq_cst) == number) found.state = Window::State::open;
  return found;
}

void SignalBoard::signal(Rank to, int kind) {
  auto& count = signals(self_, to).counts[kind];
  board_->publishTo(to, count, count.load(std::memory_order_relaxed) + 1);
}

}  // namespace falcon::transport
