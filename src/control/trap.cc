#include "control/trap.h"

#include <algorithm>
#include <utility>

#include "base/calling_thread.h"
#include "base/contained.h"
#include "base/log.h"

namespace falcon::control {

/// A thread's slots in the traps it has met (one in practice); marks them when the thread ends.
struct Trap::SlotOwner {
  std::vector<std::pair<const Trap*, std::shared_ptr<ThreadSlot>>> slots;
  ~SlotOwner() {
    CallingThread::own() = {};
    for (auto& [trap, slot] : slots) slot->gone.store(true, std::memory_order_release);
  }
};

// Calls come here that must not fail, so a thread for whose slot there is no memory shares one with its like: it can be
// held and let go, but not told from the others.
Trap::ThreadSlot& Trap::mySlot() noexcept {
  ThreadSlot* mine = &nobodys_;
  if (!contained([&] { mine = &ownSlot(); }, [](const char*) {})) missesThreads_.store(true);
  return *mine;
}

Trap::ThreadSlot& Trap::ownSlot() {
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

void Trap::watch(DrainGate::Part part, const CallCounts& counts) {
  const std::lock_guard lock(mutex_);
  gate_.add(part, counts);
  newsDue_ = true;
}

void Trap::forget(DrainGate::Part part) {
  const std::lock_guard lock(mutex_);
  gate_.remove(part);
  newsDue_ = true;
}

void Trap::raise(Nanoseconds limit) {
  const Nanoseconds now = clock_.now();
  deadline_ = now + limit;
  if (raised_.load(std::memory_order_relaxed)) return;
  closedSince_ = now;
  raised_.store(true, std::memory_order_release);
}

void Trap::lower() {
  totalClosed_ += clock_.now() - closedSince_;
  draining_ = false;
  gate_.lift();
  raised_.store(false, std::memory_order_release);
}

void Trap::close(Nanoseconds limit, bool draining) {
  if (missesThreads_.load() && !std::exchange(missesSaid_, true))
    log::notice(
        "there was no memory to keep account of a thread that calls the library: this process cannot say any more when "
        "all its threads are held, so that tests of this job, and its suspension, run into their limits");
  {
    const std::lock_guard lock(mutex_);
    raise(limit);
  }
  if (draining) drain();
}

void Trap::drain() {
  {
    const std::lock_guard lock(mutex_);
    if (!raised_.load(std::memory_order_relaxed)) return;
    draining_ = newsDue_ = true;
    saidHeld_ = saidWorking_ = false;
    gate_.order(1, {});
  }
  opened_.notify_all();
  // Who has not seen the trap raised has counted its event by now.
  heavyFence();
}

void Trap::order(std::uint64_t version, const Counts& targets) {
  {
    const std::lock_guard lock(mutex_);
    if (!draining_) return;
    gate_.order(version, targets);
    newsDue_ = true;
  }
  opened_.notify_all();
}

void Trap::open() {
  {
    const std::lock_guard lock(mutex_);
    if (!raised_.load(std::memory_order_relaxed)) return;
    lower();
  }
  opened_.notify_all();
}

void Trap::lookAgain() {
  { const std::lock_guard lock(mutex_); }  // who has looked already sleeps by now
  opened_.notify_all();
}

void Trap::expire() {
  {
    const std::lock_guard lock(mutex_);
    if (!raised_.load(std::memory_order_relaxed) || clock_.now() < deadline_) return;
  }
  open();
}

bool Trap::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

std::optional<Trap::DrainState> Trap::takeNews(Nanoseconds recent, const std::function<bool()>& launchedIsDone) {
  const std::lock_guard lock(mutex_);
  if (!draining_) return std::nullopt;
  const bool here = !gate_.isBelow() && !gate_.isInside() && holdsAllNow(recent);
  const bool held = here && launchedIsDone(), working = here && !held;
  if (!newsDue_ && held == saidHeld_ && working == saidWorking_) return std::nullopt;
  newsDue_ = false;
  saidHeld_ = held;
  saidWorking_ = working;
  return DrainState{gate_.report(), held, gate_.parts(), working};
}

bool Trap::holdsAll(Nanoseconds recent) const {
  const std::lock_guard lock(mutex_);
  return holdsAllNow(recent);
}

bool Trap::holdsAllNow(Nanoseconds recent) const {
  if (missesThreads_.load(std::memory_order_relaxed)) return false;
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

/// Until the trap changes, or opens itself.
void Trap::sleep(std::unique_lock<std::mutex>& lock) {
  const Nanoseconds left = deadline_ - clock_.now();
  if (left > 0ns) {
    opened_.wait_for(lock, left);
    return;
  }
  lower();
  opened_.notify_all();
}

void Trap::hold() {
  ThreadSlot& slot = mySlot();
  std::unique_lock lock(mutex_);
  if (draining_) return;  // the event has been let in, and comes to its end
  slot.held.store(true, std::memory_order_release);
  while (raised_.load(std::memory_order_relaxed) && !draining_) sleep(lock);
  slot.held.store(false, std::memory_order_release);
}

void Trap::holdEvent(CallEvent& event) {
  ThreadSlot& slot = mySlot();
  std::unique_lock lock(mutex_);
  event.takeBack();
  slot.held.store(true, std::memory_order_release);
  while (raised_.load(std::memory_order_relaxed) && !event.isCalledOff() && !(draining_ && gate_.mayEnter()))
    sleep(lock);
  if (!event.isCalledOff()) event.enter();
  // Also where it was not held: what was counted for a moment may have been reported.
  newsDue_ = true;
  slot.held.store(false, std::memory_order_release);
}

}  // namespace falcon::control
