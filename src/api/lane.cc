#include "api/lane.h"

#include <algorithm>
#include <utility>

#include "api/guard.h"
#include "base/clock.h"
#include "base/per_process.h"

namespace falcon::api {
namespace {

// While it waits, a thread looks at the trap so often.
constexpr Nanoseconds holdInterval = 20ms;

// One for all lanes: they change together, and only for moments.
constinit PerProcess<std::mutex> lanesMutex;

}  // namespace

// Made here and not by the thread that serves it, where nobody could be told that there was no memory for it.
Lane::Lane() {
  static_cast<void>(lanesMutex.get());
}

bool Lane::queue(const QueuedWorkRef& work) {
  const std::lock_guard lock(lanesMutex.get());
  if (std::any_of(work->lanes.begin(), work->lanes.end(), [](const Lane* lane) { return lane->closed_; })) return false;
  for (Lane* lane : work->lanes) {
    lane->works_.push(work);
    ++lane->queuedSoFar_;
    lane->unfinished_.fetch_add(1, std::memory_order_relaxed);
  }
  work->lanes.front()->changed_.notify_all();
  return true;
}

void Lane::wait(HoldPoint* hold) {
  std::unique_lock lock(lanesMutex.get());
  const std::uint64_t last = queuedSoFar_;
  while (finishedSoFar_ < last) {
    if (!hold) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, holdInterval);
    lock.unlock();
    hold->pass();
    lock.lock();
  }
}

std::optional<Error> Lane::error() const {
  const std::lock_guard lock(lanesMutex.get());
  return error_;
}

std::optional<Error> Lane::takeError() {
  const std::lock_guard lock(lanesMutex.get());
  return std::exchange(error_, std::nullopt);
}

std::optional<Error> Lane::takeErrorForCallback() {
  const std::lock_guard lock(lanesMutex.get());
  return std::exchange(errorForCallback_, std::nullopt);
}

bool Lane::mayRun() const {
  if (works_.empty() || works_.front()->lanes.front() != this) return false;
  const auto& first = works_.front();
  return std::all_of(first->lanes.begin(), first->lanes.end(),
                     [&](const Lane* lane) { return lane->works_.front() == first; });
}

void Lane::serve() {
  std::unique_lock lock(lanesMutex.get());
  while (true) {
    changed_.wait(lock, [this] { return mayRun() || (closed_ && works_.empty()); });
    if (works_.empty()) return;
    QueuedWorkRef work = works_.front();
    lock.unlock();
    work->outcome = withoutExceptions("a call on a host stream", [&] { return work->run(); });
    lock.lock();
    finish(*work);
    // What the work owns may go with it, a communicator even: not under the lock.
    lock.unlock();
    work.reset();
    lock.lock();
  }
}

void Lane::finish(QueuedWork& work) {
  for (Lane* lane : work.lanes) {
    lane->works_.pop();
    ++lane->finishedSoFar_;
    lane->unfinished_.fetch_sub(1, std::memory_order_release);
    if (!work.outcome)
      for (auto* kept : {&lane->error_, &lane->errorForCallback_})
        if (!*kept) keepError(work.outcome.error(), [&](Error error) { *kept = std::move(error); });
    lane->changed_.notify_all();
  }
  // After all have left: who may run now has been behind this one in one of its lanes.
  for (Lane* lane : work.lanes)
    if (!lane->works_.empty()) lane->works_.front()->lanes.front()->changed_.notify_all();
}

void Lane::close() {
  const std::lock_guard lock(lanesMutex.get());
  closed_ = true;
  changed_.notify_all();
}

}  // namespace falcon::api
