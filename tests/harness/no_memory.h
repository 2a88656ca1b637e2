// A thread that gets no memory. Who links this has the global operator new replaced.
#pragma once

namespace falcon::test {

/// While it lives, operator new throws std::bad_alloc on this thread.
class NoMemory {
 public:
  NoMemory();
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace falcon::test
