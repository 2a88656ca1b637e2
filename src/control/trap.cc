#include "control/trap.h"

#include <algorithm>

namespace falcon::control {

/// A thread's slots in the traps it has met (one in practice); marks them when the thread ends.
struct Trap::SlotOwner {
  std::vector<std::pair<const Trap*, std::shared_ptr<ThreadSlot>>> slots;
  ~SlotOwner() {
    for (auto& [trap, slot] : slots) slot->gone.store(true, std::memory_order_release);
  }
};

Trap::ThreadSlot& Trap::mySlot() {
  thread_local SlotOwner owner;
  for (auto& [trap, slot] : owner.slots)
    if (trap == this && slot.use_count() > 1) return *slot;
  // A slot whose trap is gone is held by this thread alone.
  std::erase_if(owner.slots, [](const auto& entry) { return entry.second.use_count() == 1; });
  auto slot = std::make_shared<ThreadSlot>();
  owner.slots.emplace_back(this, slot);
  const std::lock_guard lock(mutex_);
  std::erase_if(slots_, [](const auto& each) { return each->gone.load(std::memory_order_acquire); });
  slots_.push_back(slot);
  return *slot;
}

void Trap::noteEntry() noexcept {
  mySlot().inside.store(true, std::memory_order_relaxed);
}

void Trap::noteCall(Nanoseconds now) noexcept {
  ThreadSlot& slot = mySlot();
  slot.lastCall.store(now.count(), std::memory_order_relaxed);
  slot.inside.store(false, std::memory_order_relaxed);
}

void Trap::close(Nanoseconds limit) {
  const std::lock_guard lock(mutex_);
  const Nanoseconds now = clock_.now();
  deadline_ = now + limit;
  if (raised_.load(std::memory_order_relaxed)) return;
  closedSince_ = now;
  raised_.store(true, std::memory_order_release);
}

void Trap::open() {
  {
    const std::lock_guard lock(mutex_);
    if (!raised_.load(std::memory_order_relaxed)) return;
    totalClosed_ += clock_.now() - closedSince_;
    raised_.store(false, std::memory_order_release);
  }
  opened_.notify_all();
}

void Trap::expire() {
  {
    const std::lock_guard lock(mutex_);
    if (!raised_.load(std::memory_order_relaxed) || clock_.now() < deadline_) return;
  }
  open();
}

bool Trap::holdsAll(Nanoseconds recent) const {
  const std::lock_guard lock(mutex_);
  const Nanoseconds now = clock_.now();
  const auto oldest = (now - recent).count();
  bool any = false;
  for (const auto& slot : slots_) {
    if (slot->held.load(std::memory_order_acquire))
      any = true;
    else if (!slot->gone.load(std::memory_order_acquire) &&
             (slot->inside.load(std::memory_order_relaxed) || slot->lastCall.load(std::memory_order_relaxed) > oldest))
      return false;
  }
  return any || (raised_.load(std::memory_order_relaxed) && now - closedSince_ >= recent);
}

Nanoseconds Trap::totalClosed() const {
  const std::lock_guard lock(mutex_);
  return totalClosed_ + (raised_.load(std::memory_order_relaxed) ? clock_.now() - closedSince_ : Nanoseconds(0));
}

void Trap::hold() {
  ThreadSlot& slot = mySlot();
  std::unique_lock lock(mutex_);
  slot.held.store(true, std::memory_order_release);
  while (raised_.load(std::memory_order_relaxed)) {
    const Nanoseconds left = deadline_ - clock_.now();
    if (left <= 0ns) {
      totalClosed_ += clock_.now() - closedSince_;
      raised_.store(false, std::memory_order_release);
      opened_.notify_all();
      break;
    }
    opened_.wait_for(lock, left);
  }
  slot.held.store(false, std::memory_order_release);
}

}  // namespace falcon::control
