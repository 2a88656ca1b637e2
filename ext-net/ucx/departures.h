// Ends over UCX that have been closed in order, and stay until the other end does not need them any more.
//
// A send over UCX is done when UCX has taken the bytes, which may be long before they have arrived; and what an end
// has in the network is lost where the other one notices the end of the connection first (it may go by several
// sockets). So who closes says how many messages are done there (farewell.h), and keeps the end, which costs memory and
// descriptors, until the other end has closed too or is gone. Nobody waits for that, and no thread does it: whoever
// calls us later looks.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "ucx/farewell.h"
#include "ucx/ucx_end.h"

namespace falcon::net {

/// One a process. Thread-safe.
class Departures {
 public:
  static Departures& instance();

  /// Tells the other end, and lets what was sent get on its way: for 50 ms at most, and closes that follow each other
  /// wait no longer all together.
  /// @param done  messages that are done at this end; none of them is still under way
  void add(std::unique_ptr<UcxEnd> end, Farewell farewell, std::uint64_t done);
  /// Ends those that nobody needs any more. Costs nothing where there are none.
  void look();
  /// Those that stay.
  std::size_t count() const { return count_; }

 private:
  struct Departing {
    std::unique_ptr<UcxEnd> end;
    Farewell farewell;
  };

  Departures();
  void flush(UcxEnd& end);
  /// When the process ends, for a second at most: what has not been taken would be lost.
  void waitAtExit();

  const pid_t process_;
  std::mutex mutex_;
  std::list<Departing> staying_;
  std::atomic<std::size_t> count_{0};
  std::optional<Nanoseconds> lastWait_;
  Nanoseconds patientUntil_{0};
};

}  // namespace falcon::net
