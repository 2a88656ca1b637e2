// Work that waits for its turn: a piece of it stands in several lanes and runs when it is the first in all of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/hold_point.h"
#include "base/result.h"

namespace falcon::api {

class Lane;

struct QueuedWork {
  std::function<Status()> run;  ///< blocking; may throw
  std::vector<Lane*> lanes;     ///< no duplicates; they outlive the work. The thread that serves the first one runs it.
  Status outcome;               ///< valid once a wait() after the queueing has returned
};

/// The order of one host stream, or of one communicator. Since a piece of work joins all its lanes at once, the one
/// that was queued first can always run: lanes never wait for each other in a circle. Thread-safe.
class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Nothing is queued or running; what ran is then seen by the caller. One load.
  bool empty() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Blocks until what was queued before is done. Meanwhile it may be held; `hold` may be null.
  void wait(HoldPoint* hold);
  /// How the first work that failed since takeError() did so.
  std::optional<Error> error() const;
  std::optional<Error> takeError();

  /// False: one of the lanes is closed, and nothing was queued.
  static bool queue(const std::shared_ptr<QueuedWork>& work);

  /// What the lane's thread does: runs the work that is its own, until the lane is closed and empty.
  void serve();
  void close();

 private:
  bool mayRun() const;
  void finish(const std::shared_ptr<QueuedWork>& work);

  std::deque<std::shared_ptr<QueuedWork>> works_;
  std::atomic<std::uint64_t> unfinished_{0};
  std::uint64_t queuedSoFar_ = 0, finishedSoFar_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
  std::condition_variable changed_;
};

}  // namespace falcon::api
