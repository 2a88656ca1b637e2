// Where the bus leaves messages for the monitor thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "bootstrap/bus.h"

namespace falcon::bootstrap {

/// Thread-safe; bounded: texts beyond the bound are dropped with one WARN, news about who is there are not.
class BusInbox {
 public:
  void put(BusMessage message);
  std::vector<BusMessage> take(Nanoseconds limit);
  void wake();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<BusMessage> messages_;
  std::size_t bytes_ = 0;
  bool woken_ = false;
  bool warned_ = false;
};

}  // namespace falcon::bootstrap
