// Messages between two ranks of one node: for each ordered pair a few cache lines in the memory of the board that they
// share, where the sender puts short messages whole, and of long ones where they are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace falcon::transport {

class NodeBoard;

/// One rank's view of all boxes. The messages of an ordered pair are numbered from 1, posted in that order, and taken
/// in that order. Thread-safe between ranks; one thread at a time acts for a rank.
class Mailboxes {
 public:
  /// The boxes grow with the square of the ranks: with more there are none.
  static constexpr int mostRanks = 64;
  static constexpr bool existFor(int ranks) { return ranks <= mostRanks; }
  /// Messages of a pair that may be posted and not yet taken; a power of two.
  static constexpr std::uint64_t slotCountFor(int ranks) { return ranks <= 16 ? 16 : 8; }
  /// Each rank has some rooms for messages that do not fit into a slot, whoever gets them.
  static constexpr std::size_t roomBytesFor(int ranks) { return ranks <= 16 ? 64 << 10 : 4 << 10; }
  static constexpr int roomCount = 8;
  /// What fits into the cache line that announces it.
  static constexpr std::size_t slotBytes = 40;
  static constexpr std::size_t bytesFor(int ranks) {
    return existFor(ranks) ? ranks * (ranks * boxStride(ranks) + roomsBytes(ranks)) : 0;
  }

  /// A message as its receiver finds it.
  struct Letter {
    std::uint64_t bytes = 0;
    const std::byte* here = nullptr;  ///< null: it is to be read from the sender's memory
    std::uint64_t address = 0;        ///< there
    bool timed = false;               ///< the sender wants to know when it is being read
  };

  /// `memory`: bytesFor(ranks), zero when the first rank comes. The board outlives the boxes.
  Mailboxes(NodeBoard& board, std::byte* memory, int ranks, Rank self);

  std::size_t roomBytes() const { return roomBytesFor(ranks_); }

  /// Whether all messages before this one have been posted to `to`.
  bool isNextTo(Rank to, std::uint64_t number) const { return sides_[to].posted + 1 == number; }
  /// Whether all messages before this one have been taken from `from`.
  bool isNextFrom(Rank from, std::uint64_t number) const { return sides_[from].taken + 1 == number; }

  /// Whether it is the turn of message `number` to `to`, and there is a slot for it.
  bool mayPost(Rank to, std::uint64_t number);
  /// After mayPost(): posts the message whole; false: nothing has happened, it has to be read from this rank's memory
  /// (it is too long, or all rooms are full).
  bool postWhole(Rank to, std::uint64_t number, const std::byte* message, std::size_t bytes);
  /// After mayPost(): posts where the message is; it stays there until it was taken.
  void postAddress(Rank to, std::uint64_t number, const std::byte* message, std::size_t bytes, bool timed);
  bool wasTaken(Rank to, std::uint64_t number) const {
    return hisLine(to).taken.load(std::memory_order_seq_cst) >= number;
  }
  /// Of a timed one.
  bool isBeingRead(Rank to, std::uint64_t number) const {
    return hisLine(to).begun.load(std::memory_order_seq_cst) >= number;
  }

  /// Whether it is the turn of message `number` from `from`, and it is there.
  bool hasCome(Rank from, std::uint64_t number) const {
    return isNextFrom(from, number) && slot(from, self_, number).number.load(std::memory_order_seq_cst) == number;
  }
  /// Of one that has come; false: what the sender wrote makes no sense.
  bool read(Rank from, std::uint64_t number, Letter& letter) const;
  /// Reading of a timed one begins.
  void begin(Rank from, std::uint64_t number);
  /// The message was read; its place is the sender's again.
  void take(Rank from, std::uint64_t number);

 private:
  // `where`: see above; the rest of the line holds a message that fits.
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> bytes, where;
  };
  /// Written by the receiver alone.
  struct Line {
    alignas(64) std::atomic<std::uint64_t> taken, begun;
  };
  // Values of Slot::where that are no addresses.
  static constexpr std::uint64_t inSlot = 0, firstRoom = 1, timedBit = std::uint64_t{1} << 63;

  /// What this rank knows without asking.
  struct Side {
    std::uint64_t posted = 0, knownTaken = 0;  // to that rank
    std::uint64_t taken = 0;                   // from that rank
  };
  struct RoomUse {
    Rank to = -1;
    std::uint64_t number = 0;
  };

  static constexpr std::size_t boxStride(int ranks) { return sizeof(Line) + slotCountFor(ranks) * sizeof(Slot); }
  static constexpr std::size_t roomsBytes(int ranks) { return roomCount * roomBytesFor(ranks); }
  std::byte* box(Rank from, Rank to) const {
    return memory_ + (static_cast<std::size_t>(from) * ranks_ + to) * stride_;
  }
  Slot& slot(Rank from, Rank to, std::uint64_t number) const {
    return *reinterpret_cast<Slot*>(box(from, to) + sizeof(Line) + (number & (slotCount_ - 1)) * sizeof(Slot));
  }
  Line& hisLine(Rank to) const { return *reinterpret_cast<Line*>(box(self_, to)); }
  Line& myLine(Rank from) const { return *reinterpret_cast<Line*>(box(from, self_)); }
  std::byte* room(Rank owner, std::uint64_t index) const {
    return rooms_ + owner * roomsBytes(ranks_) + index * roomBytes();
  }
  std::byte* freeRoom(Rank to, std::uint64_t number, std::uint64_t& index);
  void post(Rank to, std::uint64_t number, std::uint64_t bytes, std::uint64_t where);

  NodeBoard* board_;
  const int ranks_;
  const Rank self_;
  const std::uint64_t slotCount_ = slotCountFor(ranks_);
  const std::size_t stride_ = boxStride(ranks_);
  std::byte* const memory_;
  std::byte* const rooms_ = memory_ + ranks_ * ranks_ * stride_;
  std::vector<Side> sides_;
  std::array<RoomUse, roomCount> uses_;
  int nextRoom_ = 0;
};

}  // namespace falcon::transport
