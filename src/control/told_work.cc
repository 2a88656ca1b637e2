#include "control/told_work.h"

#include <atomic>
#include <cmath>

#include "base/log.h"
#include "base/overwriting_ring.h"

namespace falcon::control {
namespace {

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
  OverwritingRing(ring, slots, told).write([&](Slot& slot) {
    slot.time.store(SystemClock::instance().now().count(), std::memory_order_relaxed);
    slot.work.store(work, std::memory_order_relaxed);
  });
  return {};
}

std::uint64_t ToldWork::count() noexcept {
  return told.load(std::memory_order_relaxed);
}

bool ToldWork::readFrom(std::uint64_t& next, std::deque<Told>& out) {
  const OverwritingRing<const Slot> written(ring, slots, told);
  const std::uint64_t end = written.end();
  bool whole = true;
  if (end - next > slots) {
    next = end - slots;
    whole = false;
  }
  for (; next < end; ++next) {
    Told one;
    const RingRecord found = written.read(next, [&](const Slot& slot) {
      one = {Nanoseconds(slot.time.load(std::memory_order_relaxed)), slot.work.load(std::memory_order_relaxed)};
    });
    if (found == RingRecord::notYet) return whole;  // the next time
    if (found == RingRecord::whole)
      out.push_back(one);
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
