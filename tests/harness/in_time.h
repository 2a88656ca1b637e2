// Bounds on time where the time is what is tested.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace falcon::test {

/// Whether what `attempt` measures is below `limit` in one of three attempts, each of which checks all else by itself.
/// A busy machine may leave us without a processor for seconds, now and then; what is wrong is late each time.
inline testing::AssertionResult isInTime(std::chrono::duration<double> limit,
                                         const std::function<std::chrono::duration<double>()>& attempt) {
  std::chrono::duration<double> least{1e9};
  for (int i = 0; i < 3 && least >= limit && !testing::Test::HasFatalFailure(); ++i) least = std::min(least, attempt());
  if (least < limit) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "it took " << least.count() << " s and more, not less than " << limit.count();
}

/// How long `work` takes.
inline std::chrono::duration<double> timeOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace falcon::test
