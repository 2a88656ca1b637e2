// The compiler's atomic operations, since the front includes nothing of C++'s library.
#pragma once

namespace falcon::front {

template <class T>
struct Atomic {
  T value;
  T load() const { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }
  void store(T wanted) { __atomic_store_n(&value, wanted, __ATOMIC_RELEASE); }
  /// Whether it was `expected`; then it is `wanted` now.
  bool replace(T expected, T wanted) {
    return __atomic_compare_exchange_n(&value, &expected, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }
};

}  // namespace falcon::front
