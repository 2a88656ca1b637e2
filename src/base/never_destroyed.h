// For what is of use to the very end of a process.
#pragma once

namespace falcon {

/// In static storage: other threads use it while the process exits, and so may destructors of the program's that run
/// after ours would.
template <class T>
union NeverDestroyed {
  constexpr NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  T value;
};

}  // namespace falcon
