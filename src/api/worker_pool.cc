#include "api/worker_pool.h"

#include <thread>

#include "base/clock.h"
#include "base/contained.h"
#include "base/library_thread.h"
#include "base/per_process.h"

namespace falcon::api {
namespace {

constexpr auto keptIdle = 5s;

}  // namespace

WorkerPool& WorkerPool::instance() {
  static constinit PerProcess<WorkerPool> ofThisProcess;
  return ofThisProcess.get();
}

bool WorkerPool::run(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  return contained(
      [&] {
        // Those that are idle have been promised to what waits already.
        if (idle_ <= waiting_.size()) startThread();
        waiting_.push_back(std::move(work));
        changed_.notify_one();
      },
      [](const char*) {});
}

void WorkerPool::startThread() {
  libraryThread("nccl-falcon-bg", [this] { work(); }).detach();
  ++idle_;  // counted here, so that the next run() sees it
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (changed_.wait_for(lock, keptIdle, [&] { return !waiting_.empty(); })) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    --idle_;
    lock.unlock();
    next();
    next = nullptr;  // what it held ends outside the lock
    lock.lock();
    ++idle_;
  }
  --idle_;
}

}  // namespace falcon::api
