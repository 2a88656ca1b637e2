// A ring of slots in shared memory that many threads write, without locks, and that overwrites its oldest records.
// Record `index` (from 0) is in slot `index % slots`, whose `ticket` says so: index + 1 (0: none yet), with
// beingWritten beside it until all of the record is there.
//
// A thread may be stopped in the middle of a record for as long as the others take to go round the whole ring. Nobody
// waits for it, and nobody writes beside it: a record that would be next in its slot is left out, and the ticket says
// that, too (leftOut), so that readers do not wait for it. Likewise a thread that was stopped before it came to its
// slot leaves its record out where a newer one is there.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <type_traits>

namespace falcon {

enum class RingRecord {
  whole,
  notYet,  ///< it is being written, or about to be
  lost     ///< overwritten, or left out
};

/// What is said about the ring, which lies elsewhere. Slot: with a member `std::atomic<std::uint64_t> ticket`, and what
/// the record is made of in atomics; const for who only reads.
template <class Slot>
class OverwritingRing {
  using Number =
      std::conditional_t<std::is_const_v<Slot>, const std::atomic<std::uint64_t>, std::atomic<std::uint64_t>>;

 public:
  /// `slots`: a power of two. `head`: how many indexes were given out.
  OverwritingRing(Slot* first, std::uint64_t slots, Number& head) : first_(first), slots_(slots), head_(&head) {
    assert(std::has_single_bit(slots));
  }

  /// Calls `fill(slot)`, which stores the record (relaxed). False: the record is left out. Lock-free, any thread.
  template <class Fill>
  bool write(Fill fill) noexcept {
    const std::uint64_t index = head_->fetch_add(1, std::memory_order_relaxed);
    Slot& slot = at(index);
    if (!claim(slot.ticket, index)) return false;
    fill(slot);
    slot.ticket.store(index + 1, std::memory_order_release);
    if (end() - index > slots_) [[unlikely]]
      freeForNewer(slot.ticket, index);
    return true;
  }

  /// For who looks at the slots as they lie.
  static constexpr bool isOfAWholeRecord(std::uint64_t ticket) { return ticket != 0 && ticket == numberIn(ticket); }

  /// The index after the newest record's, which may not be there yet.
  std::uint64_t end() const noexcept { return head_->load(std::memory_order_acquire); }

  /// Calls `copy(slot)`, which loads the record (relaxed), where record `index`, which is below end(), is in its slot.
  /// What was copied counts only when `whole` is returned.
  template <class Copy>
  RingRecord read(std::uint64_t index, Copy copy) const {
    const Slot& slot = at(index);
    const std::uint64_t seen = slot.ticket.load(std::memory_order_acquire);
    if (seen != index + 1) {
      const bool isLost = numberIn(seen) > index + 1 || (numberIn(seen) == index + 1 && (seen & leftOut) != 0);
      return isLost ? RingRecord::lost : RingRecord::notYet;
    }
    copy(slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    return slot.ticket.load(std::memory_order_relaxed) == seen ? RingRecord::whole : RingRecord::lost;
  }

 private:
  static constexpr std::uint64_t beingWritten = std::uint64_t{1} << 63, leftOut = std::uint64_t{1} << 62;

  Slot& at(std::uint64_t index) const { return first_[index & (slots_ - 1)]; }
  static constexpr std::uint64_t numberIn(std::uint64_t ticket) { return ticket & ~(beingWritten | leftOut); }

  /// Whether the caller may write record `index` now.
  static bool claim(std::atomic<std::uint64_t>& ticket, std::uint64_t index) noexcept {
    std::uint64_t seen = ticket.load(std::memory_order_relaxed);
    while (numberIn(seen) <= index) {
      const bool taken = (seen & beingWritten) != 0;
      const std::uint64_t next = (index + 1) | beingWritten | (taken ? leftOut : 0);
      if (!ticket.compare_exchange_weak(seen, next, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      // Who sees anything of the new record sees this ticket.
      std::atomic_thread_fence(std::memory_order_release);
      return !taken;
    }
    return false;
  }

  /// The thread that wrote record `index` was overtaken by a whole round: what it stored last says nothing of those
  /// that were left out meanwhile. (Where one of them comes in between these very stores and loads, a reader waits for
  /// it until the ring has gone round.)
  void freeForNewer(std::atomic<std::uint64_t>& ticket, std::uint64_t index) const noexcept {
    std::uint64_t mine = index + 1;
    const std::uint64_t last = end() - 1;
    const std::uint64_t newest = last - ((last - index) & (slots_ - 1));
    ticket.compare_exchange_strong(mine, (newest + 1) | leftOut, std::memory_order_release, std::memory_order_relaxed);
  }

  Slot* first_;
  std::uint64_t slots_;
  Number* head_;
};

}  // namespace falcon
