#include "control/told_work.h"

#include <atomic>
#include <cmath>

#include "base/log.h"

namespace falcon::control {
namespace {

/// A slot of the ring. The ticket is the number of what is in it, counted from 1; 0 while it is being written.
struct Slot {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::int64_t> time;
  std::atomic<double> work;
};
/// The monitor reads ten times a second, and an iteration has a few micro-batches.
constexpr std::uint64_t slots = 4096;
// Plain atomics, and no object behind a lock: this is the application's path, and a fork may come at any moment.
constinit Slot ring[slots];
constinit std::atomic<std::uint64_t> told{0};

}  // namespace

Status ToldWork::tell(double work) {
  if (!(work > 0) || !std::isfinite(work))
    return log::decided(Error::invalidArgument(
        "ncclFalconIterationWork: {} is no amount of work; pass a number above 0, such as the tokens computed", work));
  const std::uint64_t number = told.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = ring[number % slots];
  slot.ticket.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.time.store(SystemClock::instance().now().count(), std::memory_order_relaxed);
  slot.work.store(work, std::memory_order_relaxed);
  slot.ticket.store(number + 1, std::memory_order_release);
  return {};
}

std::uint64_t ToldWork::count() noexcept {
  return told.load(std::memory_order_relaxed);
}

bool ToldWork::readFrom(std::uint64_t& next, std::deque<Told>& out) {
  const std::uint64_t end = told.load(std::memory_order_acquire);
  bool whole = true;
  if (end - next > slots) {
    next = end - slots;
    whole = false;
  }
  for (; next < end; ++next) {
    const Slot& slot = ring[next % slots];
    const std::uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
    if (ticket < next + 1) return whole;  // being written: the next time
    const Told found{Nanoseconds(slot.time.load(std::memory_order_relaxed)), slot.work.load(std::memory_order_relaxed)};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.ticket.load(std::memory_order_relaxed) == next + 1)
      out.push_back(found);
    else
      whole = false;
  }
  return whole;
}

void WorkSums::read() {
  if (!ToldWork::readFrom(next_, waiting_)) lost_ = SystemClock::instance().now();
}

double WorkSums::take(Nanoseconds start, Nanoseconds end) {
  double sum = 0;
  while (!waiting_.empty() && waiting_.front().time <= end) {
    if (waiting_.front().time > start) sum += waiting_.front().work;
    waiting_.pop_front();
  }
  return start < lost_ ? 0 : sum;
}

}  // namespace falcon::control
