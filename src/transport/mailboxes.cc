#include "transport/mailboxes.h"

#include <bit>
#include <cstring>

#include "transport/node_board.h"

namespace falcon::transport {
namespace {

// Right behind the words of a slot, in the same cache line: a short message travels with what announces it.
std::byte* restOf(void* slot) {
  return static_cast<std::byte*>(slot) + 64 - Mailboxes::slotBytes;
}

}  // namespace

Mailboxes::Mailboxes(NodeBoard& board, std::byte* memory, int ranks, Rank self)
    : board_(&board), ranks_(ranks), self_(self), memory_(memory), sides_(ranks) {
  static_assert(sizeof(Slot) == 64 && 3 * sizeof(std::uint64_t) + slotBytes == sizeof(Slot));
  static_assert(std::has_single_bit(slotCountFor(16)) && std::has_single_bit(slotCountFor(17)));
}

bool Mailboxes::mayPost(Rank to, std::uint64_t number) {
  if (!isNextTo(to, number)) return false;
  Side& side = sides_[to];
  if (number <= side.knownTaken + slotCount_) return true;
  side.knownTaken = hisLine(to).taken.load(std::memory_order_seq_cst);
  return number <= side.knownTaken + slotCount_;
}

bool Mailboxes::postWhole(Rank to, std::uint64_t number, const std::byte* message, std::size_t bytes) {
  std::uint64_t where = inSlot;
  std::byte* place = nullptr;
  if (bytes <= slotBytes) {
    place = restOf(&slot(self_, to, number));
  } else if (bytes <= roomBytes()) {
    place = freeRoom(to, number, where);
  }
  if (!place) return false;
  std::memcpy(place, message, bytes);
  post(to, number, bytes, where);
  return true;
}

void Mailboxes::postAddress(Rank to, std::uint64_t number, const std::byte* message, std::size_t bytes, bool timed) {
  post(to, number, bytes, reinterpret_cast<std::uintptr_t>(message) | (timed ? timedBit : 0));
}

/// Null where all are in use.
std::byte* Mailboxes::freeRoom(Rank to, std::uint64_t number, std::uint64_t& where) {
  for (int tried = 0; tried < roomCount; ++tried) {
    const int index = nextRoom_;
    nextRoom_ = (nextRoom_ + 1) % roomCount;
    RoomUse& use = uses_[index];
    if (use.to >= 0 && !wasTaken(use.to, use.number)) continue;
    use = {to, number};
    where = firstRoom + index;
    return room(self_, index);
  }
  return nullptr;
}

void Mailboxes::post(Rank to, std::uint64_t number, std::uint64_t bytes, std::uint64_t where) {
  Slot& mine = slot(self_, to, number);
  mine.bytes.store(bytes, std::memory_order_relaxed);
  mine.where.store(where, std::memory_order_relaxed);
  sides_[to].posted = number;
  board_->publishTo(to, mine.number, number);
}

bool Mailboxes::read(Rank from, std::uint64_t number, Letter& letter) const {
  Slot& his = slot(from, self_, number);
  letter.bytes = his.bytes.load(std::memory_order_relaxed);
  const std::uint64_t where = his.where.load(std::memory_order_relaxed);
  if (where == inSlot) {
    letter.here = restOf(&his);
    return letter.bytes <= slotBytes;
  }
  if (where < firstRoom + roomCount) {
    letter.here = room(from, where - firstRoom);
    return letter.bytes <= roomBytes();
  }
  letter.here = nullptr;
  letter.address = where & ~timedBit;
  letter.timed = where != letter.address;
  return true;
}

void Mailboxes::begin(Rank from, std::uint64_t number) {
  board_->publishTo(from, myLine(from).begun, number);
}

void Mailboxes::take(Rank from, std::uint64_t number) {
  sides_[from].taken = number;
  board_->publishTo(from, myLine(from).taken, number);
}

}  // namespace falcon::transport
