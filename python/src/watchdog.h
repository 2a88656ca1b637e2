// Ends what takes longer than its timeout.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace falcon::python {

class Communicator;

/// One thread, while there are communicators; it never touches Python.
class Watchdog {
 public:
  static Watchdog& instance();
  void watch(const std::shared_ptr<Communicator>& communicator);

 private:
  void serve();

  std::mutex mutex_;
  std::vector<std::weak_ptr<Communicator>> watched_;
  bool serving_ = false;
};

}  // namespace falcon::python
