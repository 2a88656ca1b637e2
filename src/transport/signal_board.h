// One-sided messages between the ranks of a node: where each rank's windows are, and how many signals came from whom.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "transport/mailboxes.h"
#include "transport/signal_kind.h"

namespace falcon::transport {

class NodeBoard;

/// One rank's view of the part of the board that is about windows and signals. Windows are numbered from 1 in the order
/// in which a rank registers them; the same number means the same window on all ranks. Thread-safe between ranks; one
/// thread at a time registers for a rank, and one at a time sends and receives for it.
class SignalBoard {
 public:
  /// As for messages: the signals grow with the square of the ranks.
  static constexpr bool existsFor(int ranks) { return Mailboxes::existFor(ranks); }
  static constexpr std::size_t bytesFor(int ranks) {
    return existsFor(ranks) ? ranks * (sizeof(Windows) + ranks * sizeof(Signals)) : 0;
  }

  struct Window {
    enum class State : std::uint8_t {
      awaited,  ///< not registered yet
      open,
      closed  ///< given back, or it could not be registered
    };
    State state = State::awaited;
    std::uint64_t address = 0;  ///< in its owner's memory
    std::uint64_t bytes = 0;
  };

  /// `memory`: bytesFor(ranks), zero when the first rank comes. The board outlives this.
  SignalBoard(NodeBoard& board, std::byte* memory, int ranks, Rank self)
      : board_(&board), memory_(memory), ranks_(ranks), self_(self) {}

  /// This rank's window `number`, one more than its last. False: too many are open (mostWindows); others find it
  /// closed, as where `bytes` is 0.
  bool openWindow(std::uint64_t number, const void* address, std::size_t bytes);
  void closeWindow(std::uint64_t number);
  Window window(Rank owner, std::uint64_t number) const;
  static constexpr std::uint64_t mostWindows = 63;

  /// After what was written into the peer's window: who sees the signal sees that too.
  void signal(Rank to, int kind);
  /// Signals of this kind so far.
  std::uint64_t signalsFrom(Rank from, int kind) const {
    return signals(from, self_).counts[kind].load(std::memory_order_seq_cst);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> number;  // 0: nothing is open here
    std::atomic<std::uint64_t> address, bytes;
  };
  /// Of one owner, who alone writes.
  struct Windows {
    alignas(64) std::atomic<std::uint64_t> registered;  // the last number
    Entry entries[mostWindows];
  };
  /// Of one ordered pair; the sender alone writes.
  struct Signals {
    alignas(64) std::atomic<std::uint64_t> counts[signalKinds];
  };

  // No constructor runs: zeroes are a new board, and another rank may be on it already.
  Windows& windows(Rank owner) const { return *(reinterpret_cast<Windows*>(memory_) + owner); }
  Signals& signals(Rank from, Rank to) const {
    std::byte* const behind = memory_ + ranks_ * sizeof(Windows);
    return *(reinterpret_cast<Signals*>(behind) + static_cast<std::size_t>(from) * ranks_ + to);
  }
  /// The owner's entry that holds `wanted`; null: there is none. Most are where the search for `number` begins.
  Entry* find(Rank owner, std::uint64_t number, std::uint64_t wanted) const;

  NodeBoard* board_;
  std::byte* const memory_;
  const int ranks_;
  const Rank self_;
};

}  // namespace falcon::transport
