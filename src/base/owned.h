// Every C handle has exactly one owner that closes it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace falcon {

/// Owns a handle; closes it once. Movable, not copyable.
template <class Handle, Handle empty, auto close>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, empty)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) reset(std::exchange(other.handle_, empty));
    return *this;
  }
  ~Owned() { reset(); }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != empty; }
  /// Gives the handle up without closing it.
  Handle release() { return std::exchange(handle_, empty); }
  void reset(Handle handle = empty) {
    if (handle_ != empty) close(handle_);
    handle_ = handle;
  }

 private:
  Handle handle_ = empty;
};

// A function and not a lambda: the type must be the same in every translation unit.
inline void closeDescriptor(int descriptor) {
  ::close(descriptor);
}
using FileDescriptor = Owned<int, -1, closeDescriptor>;

/// Takes over what the kernel has just made; empty, errno untouched, where that failed. Never number 0, 1 or 2: in a
/// program that has closed those, whatever anybody prints would go into our connections and memory.
inline FileDescriptor newDescriptor(int descriptor) {
  if (descriptor < 0 || descriptor > 2) [[likely]]
    return FileDescriptor(descriptor < 0 ? -1 : descriptor);
  const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  const int problem = errno;
  ::close(descriptor);
  errno = problem;
  return FileDescriptor(above);
}

}  // namespace falcon
