// What tests may ask a fake net plugin (fake_net.cc) after the fact.
#pragma once

#include <atomic>

namespace falcon::test {

/// Of one library in one process. `fakeNetCounts()`, exported by it, gives its own.
struct FakeNetCounts {
  std::atomic<int> inits{0};
  std::atomic<int> finalizes{0};
  std::atomic<int> connections{0};      ///< ends that were opened
  std::atomic<int> closed{0};           ///< and closed
  std::atomic<int> listeners{0};        ///< that are open
  std::atomic<int> registered{0};       ///< memory that is
  std::atomic<int> sharedByThreads{0};  ///< calls on a connection while another thread was inside of one
  std::atomic<int> tooManyRequests{0};  ///< beyond what a connection must carry
  std::atomic<int> leftOver{0};         ///< requests that were not done when their connection was closed
  std::atomic<int> messages{0};         ///< sent
};

}  // namespace falcon::test
