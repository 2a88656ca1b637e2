// The iterations of a communicator, and who is told of their ends.
#pragma once

#include <mutex>

#include "api/exports.h"
#include "base/iteration_ends.h"

namespace falcon::api {

/// Thread-safe: callbacks come and go from any thread. None is called with the lock.
class Iterations {
 public:
  using Ends = IterationEnds<ncclFalconIterationEnd_t>;

  void tell(Ends::Callback callback, void* context, unsigned int flags) {
    const std::lock_guard lock(mutex_);
    ends_.tell(callback, context, flags);
  }
  Ends::Ended endedBy(unsigned long long iteration) const {
    const std::lock_guard lock(mutex_);
    return ends_.endedBy(iteration);
  }
  Ends::Due begin(const IterationBegun& next, const Ends::Ended& ended) {
    const std::lock_guard lock(mutex_);
    return ends_.begin(next, ended);
  }
  void told() {
    const std::lock_guard lock(mutex_);
    ends_.told();
  }

 private:
  mutable std::mutex mutex_;
  Ends ends_{};
};

}  // namespace falcon::api
