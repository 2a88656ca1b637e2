// Memory for events, which NCCL knows by their addresses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace falcon::profiler {

/// So many slots, used one after the other, so that one that has been given back stays as it is for as long as can be:
/// NCCL names events as parents of others when they have long stopped. A slot that is in use is passed over.
/// Thread-safe, lock-free.
template <class T, std::size_t count>
class Slots {
 public:
  /// Null where all that are near are in use: then that event is not observed.
  T* take() {
    constexpr int tries = 64;
    for (int i = 0; i < tries; ++i) {
      Slot& slot = slots_[next_.fetch_add(1, std::memory_order_relaxed) % count];
      if (slot.inUse.load(std::memory_order_relaxed) || slot.inUse.exchange(true, std::memory_order_acquire)) continue;
      slot.value = T();
      return &slot.value;
    }
    return nullptr;
  }
  void give(T* value) { slotOf(value)->inUse.store(false, std::memory_order_release); }
  bool isInUse(const T* value) const { return slotOf(value)->inUse.load(std::memory_order_acquire); }

  /// Whether there is a slot at this address; there may be anything.
  bool has(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address), first = reinterpret_cast<std::uintptr_t>(&slots_[0]);
    return at >= first && at < first + count * sizeof(Slot) && (at - first) % sizeof(Slot) == 0;
  }

 private:
  struct Slot {
    T value{};
    std::atomic<bool> inUse{false};
  };
  // The value stands first.
  static const Slot* slotOf(const T* value) { return reinterpret_cast<const Slot*>(value); }
  static Slot* slotOf(T* value) { return reinterpret_cast<Slot*>(value); }

  const std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(count);
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace falcon::profiler
