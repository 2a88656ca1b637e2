// Work that waits for its turn: a piece of it stands in several lanes and runs when it is the first in all of them.
#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/hold_point.h"
#include "base/result.h"

namespace falcon::api {

class Lane;

/// Counted: the lanes it stands in hold it, and whoever waits for it.
class QueuedWork {
 public:
  virtual ~QueuedWork() = default;
  virtual Status run() = 0;  ///< blocking; may throw

  std::vector<Lane*> lanes;  ///< no duplicates; they outlive the work. The thread that serves the first one runs it.
  Status outcome;            ///< valid once a wait() after the queueing has returned

 protected:
  /// Nobody holds it any more.
  virtual void release() = 0;

 private:
  friend void intrusive_ptr_add_ref(QueuedWork* work) { work->holders_.fetch_add(1, std::memory_order_relaxed); }
  friend void intrusive_ptr_release(QueuedWork* work) {
    if (work->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) work->release();
  }
  std::atomic<int> holders_{0};
};
using QueuedWorkRef = boost::intrusive_ptr<QueuedWork>;

/// First in, first out; keeps its memory.
class WorkQueue {
 public:
  bool empty() const { return first_ == works_.size(); }
  const QueuedWorkRef& front() const { return works_[first_]; }
  void push(QueuedWorkRef work) { works_.push_back(std::move(work)); }
  void pop() {
    works_[first_++].reset();
    if (first_ * 2 < works_.size()) return;
    works_.erase(works_.begin(), works_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

 private:
  std::vector<QueuedWorkRef> works_;
  std::size_t first_ = 0;  // those before are done
};

/// The order of one host stream, or of one communicator. Since a piece of work joins all its lanes at once, the one
/// that was queued first can always run: lanes never wait for each other in a circle. Thread-safe.
class Lane {
 public:
  Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Nothing is queued or running; what ran is then seen by the caller. One load.
  bool empty() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Blocks until what was queued before is done. Meanwhile it may be held; `hold` may be null.
  void wait(HoldPoint* hold);
  /// How the first work that failed since takeError() did so.
  std::optional<Error> error() const;
  std::optional<Error> takeError();
  /// How the first one failed that ended since the last call of this; takeError() does not change it.
  std::optional<Error> takeErrorForCallback();

  /// False: one of the lanes is closed, and nothing was queued.
  static bool queue(const QueuedWorkRef& work);

  /// What the lane's thread does: runs the work that is its own, until the lane is closed and empty.
  void serve();
  void close();

 private:
  bool mayRun() const;
  void finish(QueuedWork& work);

  WorkQueue works_;
  std::atomic<std::uint64_t> unfinished_{0};
  std::uint64_t queuedSoFar_ = 0, finishedSoFar_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
  std::optional<Error> errorForCallback_;
  std::condition_variable changed_;
};

}  // namespace falcon::api
