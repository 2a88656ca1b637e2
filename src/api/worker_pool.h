// Threads for what nonblocking communicators do behind the caller's back.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace falcon::api {

/// Whatever is handed in runs at once: it may wait for another's work, so none ever waits for a thread. A thread whose
/// work is done is kept a while for the next; so there are as many as there was work at the same time, and not one for
/// every call. Thread-safe. Never destroyed (see PerProcess): threads may still run while the process exits.
class WorkerPool {
 public:
  /// This process's own.
  static WorkerPool& instance();
  /// False: no thread can be had, and nothing has happened.
  bool run(std::function<void()> work);

 private:
  void startThread();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t idle_ = 0;
};

}  // namespace falcon::api
