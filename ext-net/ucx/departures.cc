#include "ucx/departures.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>

namespace falcon::net {
namespace {

/// Where there is room it takes no time. Where there is none, or UCX waits for the other end (it does at times, though
/// all has been taken), later calls see to it.
constexpr Nanoseconds flushLimit = 50ms;
constexpr Nanoseconds exitLimit = 1s;
/// Closes that wait within so long after another are about one event.
constexpr Nanoseconds oneEvent = 10s;
/// A worker has some megabytes. More stay only where other ends are never closed.
constexpr std::size_t mostStaying = 256;

}  // namespace

Departures& Departures::instance() {
  static auto* const one = [] {
    auto* made = new Departures;  // NCCL may call until the process is gone
    std::atexit([] { instance().waitAtExit(); });
    return made;
  }();
  return *one;
}

Departures::Departures() : process_(getpid()) {}

void Departures::add(std::unique_ptr<UcxEnd> end, Farewell farewell, std::uint64_t done) {
  farewell.say(done);
  if (done == 0 || getpid() != process_) return;
  flush(*end);
  std::list<Departing> oldest;
  {
    const std::lock_guard lock(mutex_);
    staying_.push_back({std::move(end), std::move(farewell)});
    if (staying_.size() > mostStaying) oldest.splice(oldest.begin(), staying_, staying_.begin());
    count_ = staying_.size();
  }
  look();
}

void Departures::flush(UcxEnd& end) {
  if (end.flush()) return;
  const Clock& clock = SystemClock::instance();
  Nanoseconds until{0};
  {
    const std::lock_guard lock(mutex_);
    const Nanoseconds now = clock.now();
    if (!lastWait_ || now - *lastWait_ > oneEvent) patientUntil_ = now + flushLimit;
    lastWait_ = now;
    until = patientUntil_;
  }
  do {
    end.progress();
    sched_yield();
  } while (!end.flush() && clock.now() < until);
}

void Departures::look() {
  if (count_ == 0 || getpid() != process_) return;  // a fork has none of its own
  std::list<Departing> over;                        // end without the lock: that may take a moment
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // somebody else looks
  for (auto one = staying_.begin(); one != staying_.end();) {
    const auto next = std::next(one);
    one->end->progress();
    const auto heard = one->farewell.look();
    if (heard.done || heard.problem) over.splice(over.begin(), staying_, one);
    one = next;
  }
  count_ = staying_.size();
}

void Departures::waitAtExit() {
  if (getpid() != process_) return;
  Clock& clock = SystemClock::instance();
  const Nanoseconds until = clock.now() + exitLimit;
  for (look(); count_ > 0 && clock.now() < until; look()) clock.sleep(1ms);
}

}  // namespace falcon::net
