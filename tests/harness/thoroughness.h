// How much tests repeat: the one place where that is decided.
#pragma once

#include <cstdlib>
#include <vector>

namespace falcon::test {

/// `scripts/check --full` asks.
inline bool isAskedToBeThorough() {
  return std::getenv("FALCON_TEST_THOROUGH") != nullptr;
}

/// False under the thread sanitizer, where everything takes twenty times as long and larger sizes show no new races,
/// unless FALCON_TEST_THOROUGH is set.
inline bool thorough() {
#if defined(__SANITIZE_THREAD__)
  return isAskedToBeThorough();
#else
  return true;
#endif
}

/// Under a sanitizer, unless FALCON_TEST_THOROUGH is set: it sees in a part of the cases what it sees in all, since
/// they take the same ways through the code.
inline bool isSampled() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return !isAskedToBeThorough();
#else
  return false;
#endif
}

/// Sizes of communicators to test with.
inline std::vector<int> rankCounts() {
  if (!thorough()) return {2, 4};
  return isSampled() ? std::vector{2, 3, 4} : std::vector{2, 3, 4, 8};
}

/// How many of so many random cases to look at, where a property holds for every one of them, or for all but a few.
inline int samples(int all) {
  return isSampled() ? (all + 9) / 10 : all;
}

}  // namespace falcon::test
