// What tests may ask a fake tuner plugin (fake_tuner.cc) after the fact.
#pragma once

#include <atomic>

namespace falcon::test {

/// Of one library in one process. `fakeTunerCounts()`, exported by it, gives its own.
struct FakeTunerCounts {
  std::atomic<int> inits{0};
  std::atomic<int> ranks{0}, nodes{0};  ///< as told at the last init
  std::atomic<int> asked{0};
  std::atomic<int> offered{0};  ///< costs that were not negative, at the last question
  std::atomic<int> finalizes{0};
};

}  // namespace falcon::test
