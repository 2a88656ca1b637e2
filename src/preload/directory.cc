#include "preload/directory.h"

#include <new>

namespace falcon::preload {
namespace {

constexpr int mostSteps = 64;
constexpr int placeBits = 12;
static_assert(Directory::capacity == 1 << placeBits);

/// A handle that no communicator has: somebody is changing the slot.
ncclComm_t beingChanged() {
  static char mark;
  return reinterpret_cast<ncclComm_t>(&mark);
}
/// The slot was used, so that who looks for a handle has to look further.
ncclComm_t formerlyUsed() {
  static char mark;
  return reinterpret_cast<ncclComm_t>(&mark);
}

}  // namespace

Directory::Slot* Directory::placeOf(Slot* slots, ncclComm_t handle, int step) {
  const std::uint64_t scattered = reinterpret_cast<std::uintptr_t>(handle) * 0x9e3779b97f4a7c15U;
  return &slots[((scattered >> (64 - placeBits)) + static_cast<unsigned>(step)) % capacity];
}

Directory::Use Directory::find(ncclComm_t handle) {
  if (!handle) return {};
  for (int step = 0; step < mostSteps; ++step) {
    Slot& slot = *placeOf(slots_, handle, step);
    const ncclComm_t known = slot.handle.load(std::memory_order_acquire);
    if (!known) return {};
    if (known != handle) continue;
    // Who removes it looks at the users after it has taken the handle away, so one of the two sees the other.
    slot.users.fetch_add(1, std::memory_order_seq_cst);
    if (slot.handle.load(std::memory_order_seq_cst) == handle) return Use(slot);
    leave(slot);
  }
  return {};
}

Directory::Use Directory::findWatched() {
  for (const Slot& slot : slots_) {
    const ncclComm_t handle = slot.handle.load(std::memory_order_acquire);
    if (!handle || handle == beingChanged() || handle == formerlyUsed()) continue;
    if (Use use = find(handle); use && (*use).watch()) return use;
  }
  return {};
}

bool Directory::insert(ncclComm_t handle, std::shared_ptr<WatchedCommunicator> communicator) {
  remove(handle);
  for (int step = 0; step < mostSteps; ++step) {
    Slot& slot = *placeOf(slots_, handle, step);
    ncclComm_t known = slot.handle.load(std::memory_order_acquire);
    if (known && known != formerlyUsed()) continue;
    if (!slot.handle.compare_exchange_strong(known, beingChanged())) continue;
    if (slot.users.load(std::memory_order_seq_cst) != 0) {  // of what was removed from here: the next will do
      slot.handle.store(formerlyUsed(), std::memory_order_release);
      continue;
    }
    slot.communicator = std::move(communicator);
    slot.handle.store(handle, std::memory_order_release);
    return true;
  }
  return false;
}

std::shared_ptr<WatchedCommunicator> Directory::remove(ncclComm_t handle) {
  for (int step = 0; step < mostSteps; ++step) {
    Slot& slot = *placeOf(slots_, handle, step);
    ncclComm_t known = slot.handle.load(std::memory_order_acquire);
    if (!known) return nullptr;
    if (known != handle || !slot.handle.compare_exchange_strong(known, beingChanged())) continue;
    // Who uses it still does so through the slot; then the slot keeps it until it is used again.
    std::shared_ptr<WatchedCommunicator> removed = slot.communicator;
    if (slot.users.load(std::memory_order_seq_cst) == 0) slot.communicator = nullptr;
    slot.handle.store(formerlyUsed(), std::memory_order_release);
    return removed;
  }
  return nullptr;
}

void Directory::endAll() {
  for (Slot& slot : slots_) {
    const ncclComm_t handle = slot.handle.load(std::memory_order_acquire);
    if (!handle || handle == beingChanged() || handle == formerlyUsed()) continue;
    if (const auto removed = remove(handle)) removed->end();
  }
}

void Directory::forgetAll() {
  for (Slot& slot : slots_) {
    slot.handle.store(formerlyUsed(), std::memory_order_relaxed);
    slot.users.store(0, std::memory_order_relaxed);
    new (&slot.communicator) std::shared_ptr<WatchedCommunicator>;
  }
}

}  // namespace falcon::preload
