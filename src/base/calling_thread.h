// What those who are told of calls know of the thread that makes them, so that it is looked for once in a call: where a
// library was opened later than the program began, each look at a thread's own variables takes some nanoseconds.
#pragma once

#include <cstdint>

namespace falcon {

/// One for each thread, which alone uses it. Whose `of` is not here anew fills in all of it.
struct CallingThread {
  std::uint64_t of = 0;      ///< of the recorder that has filled it in; 0: of none
  std::uint32_t number = 0;  ///< the kernel's
  std::uint32_t cursor = 0;  ///< where in its table of calls in flight the recorder looks first
  void* inTrap = nullptr;    ///< the thread in the trap of the recorder's job; null: not looked for yet

  /// The one who asks. Never destroyed: a thread may call while it ends.
  static CallingThread& own() noexcept { return mine; }

 private:
  static constinit thread_local CallingThread mine;
};

}  // namespace falcon
