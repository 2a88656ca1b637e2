// The thread that takes in what other ranks write into this process's windows: who is written to takes no part in it.
#pragma once

#include <unistd.h>

#include <memory>
#include <thread>

#include "transport/event_loop.h"

namespace falcon::transport {

/// Apart from the reactor's, which must hear of a death while much is written here. Exists while somebody holds it:
/// from the first such connection to the end of its communicator.
class WindowThread {
 public:
  /// The process's; a forked child has its own. Errors (system): no thread or no descriptors for one.
  static Result<std::shared_ptr<WindowThread>> ofThisProcess();

  explicit WindowThread(std::shared_ptr<EventLoop> loop);
  ~WindowThread();
  WindowThread(const WindowThread&) = delete;

  EventLoop& loop() { return *parts_->loop; }

 private:
  struct Parts {
    const std::shared_ptr<EventLoop> loop;
    std::thread thread;
  };

  const pid_t process_ = getpid();
  std::unique_ptr<Parts> parts_;
};

}  // namespace falcon::transport
