#include "control/vendor_events.h"

#include <algorithm>

#include "base/contained.h"
#include "base/per_process.h"
#include "control/handed_calls.h"

namespace falcon::control {
namespace {

/// What a chained plugin wants is looked at so often, as far as there are calls.
constexpr Nanoseconds refreshing = 100ms;

constinit PerProcess<VendorEvents> eventsOfThisProcess;

/// Nobody is to be told: the job does without what is observed.
template <class Work>
void withoutAWord(Work&& work) noexcept {
  contained(work, [](const char*) {});
}

}  // namespace

constinit std::atomic<VendorEvents*> VendorEvents::asked_{nullptr};

VendorEvents& VendorEvents::ofProcess() {
  return eventsOfThisProcess.get();
}

void VendorEvents::jobBegins(TransferRecorder& transfers, instrument::CallLog& log) noexcept {
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    transfers_ = &transfers;
    log_ = &log;
  });
}

void VendorEvents::jobEnds(const TransferRecorder& transfers) noexcept {
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    if (transfers_ != &transfers) return;
    transfers_ = nullptr;
    log_ = nullptr;
  });
}

void VendorEvents::ask(profiler::EventChoice& choice) noexcept {
  withoutAWord([&] {
    const std::lock_guard lock(choiceMutex_);
    choice_ = &choice;
  });
  asked_.store(this, std::memory_order_release);
}

void VendorEvents::beforeCalls(const TransferRecorder* transfers, Nanoseconds now) noexcept {
  const bool profiles = transfers && transfers->enabled();
  if (profiles == profiles_.load(std::memory_order_relaxed) &&
      now.count() - refreshedAt_.load(std::memory_order_relaxed) < refreshing.count()) [[likely]]
    return;
  refreshedAt_.store(now.count(), std::memory_order_relaxed);
  withoutAWord([&] { choose(transfers); });
}

/// Looks again with the lock held, so that of two threads the one that comes last has the last word.
void VendorEvents::choose(const TransferRecorder* transfers) {
  const std::lock_guard lock(choiceMutex_);
  if (!choice_) return;
  const bool profiles = transfers && transfers->enabled();
  if (profiles_.exchange(profiles, std::memory_order_relaxed) == profiles) return choice_->refresh();
  choice_->want(profiles ? profiler::Depth::channels : profiler::Depth::nothing);
}

int VendorEvents::joined(const plugin::ProfiledCommunicator& communicator) noexcept {
  int place = noPlace;
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    known_[nextPlace_] = {communicator.id, communicator.rank, communicator.ranks, 0};
    place = nextPlace_++;
  });
  return place;
}

void VendorEvents::left(const plugin::ProfiledCommunicator& communicator) noexcept {
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    const auto gone = std::find_if(known_.begin(), known_.end(), [&](const auto& each) {
      return each.second.vendorsId == communicator.id && each.second.rank == communicator.rank;
    });
    if (gone != known_.end()) known_.erase(gone);
  });
}

std::optional<Flight> VendorEvents::enter(CallRecord& call, int place) noexcept {
  std::optional<Flight> observed;
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    const auto at = known_.find(place);
    if (at == known_.end()) return;
    Known& known = at->second;
    const auto named = HandedCalls::callOf(
        {known.communicator, known.rank, known.size, call.operation, call.count * sizeOf(call.type), call.peer});
    if (!named) return;
    known.communicator = call.communicator = named->communicator;
    call.sequence = named->number;
    observed = noFlight;  // of the log's: it is there already
  });
  return observed;
}

/// What ends after the profiling belongs to nobody's account.
void VendorEvents::transfer(const TransferTiming& timing) noexcept {
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    if (transfers_ && transfers_->enabled()) transfers_->record(timing);
  });
}

/// No link carries it: it is to be seen in the log, and counts for nothing else.
void VendorEvents::ownWork(const TransferTiming& timing) noexcept {
  withoutAWord([&] {
    const std::lock_guard lock(mutex_);
    if (log_) log_->write(timing);
  });
}

}  // namespace falcon::control
