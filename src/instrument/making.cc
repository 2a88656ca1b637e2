#include "instrument/making.h"

#include <algorithm>
#include <cstring>

namespace falcon::instrument {

const char* nameOf(MakingKind kind) {
  constexpr const char* names[makingKindCount] = {"ncclCommInitRank", "ncclCommSplit", "ncclCommShrink"};
  return static_cast<std::uint32_t>(kind) < makingKindCount ? names[static_cast<std::uint32_t>(kind)] : "unknown";
}

Making::Making(std::span<MakingSlot> slots, const MakingEntry& entry, std::shared_ptr<const void> owner) noexcept
    : owner_(std::move(owner)) {
  const auto isFree = [](MakingSlot& slot) {
    std::uint64_t unused = 0;
    return slot.ticket.compare_exchange_strong(unused, 1, std::memory_order_acq_rel);
  };
  const auto found = std::find_if(slots.begin(), slots.end(), isFree);
  if (found == slots.end()) return;
  MakingSlot& slot = *found;
  slot.key = entry.key;
  slot.rank = entry.rank;
  slot.size = entry.size;
  slot.kind = static_cast<std::uint32_t>(entry.kind);
  slot.met.store(0, std::memory_order_relaxed);
  for (auto& word : slot.arrived) word.store(0, std::memory_order_relaxed);
  const std::size_t length = std::min(entry.name.size(), sizeof slot.name - 1);
  std::memcpy(slot.name, entry.name.data(), length);
  slot.name[length] = 0;
  const auto since = static_cast<std::uint64_t>(entry.enter.count());
  slot.ticket.store(std::max<std::uint64_t>(2, since), std::memory_order_release);
  slot_ = &slot;
}

void Making::met() noexcept {
  if (slot_) slot_->met.store(1, std::memory_order_relaxed);
}

void Making::arrived(std::span<const Rank> ranks) noexcept {
  if (!slot_) return;
  for (const Rank rank : ranks)
    if (rank >= 0 && static_cast<std::uint32_t>(rank) < MakingSlot::mostArrived)
      slot_->arrived[rank / 64].fetch_or(std::uint64_t{1} << rank % 64, std::memory_order_relaxed);
}

void Making::end() noexcept {
  if (MakingSlot* const slot = std::exchange(slot_, nullptr)) slot->ticket.store(0, std::memory_order_release);
}

}  // namespace falcon::instrument
