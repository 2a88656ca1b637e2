// Where exceptions live, in place of libstdc++'s own. That keeps some memory for the time when there is no other,
// behind a lock: a child that is forked while a thread of ours throws there waits for that lock for ever when it finds
// no memory either. Nothing is locked here. (The functions are those of the Itanium C++ ABI, section 2.4.2, and all
// that libstdc++'s file of them has, so that the linker does not take it.)
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

// The run-time's header stands right before what is thrown: 128 bytes of GCC's on x86-64 and ARM.
constexpr std::size_t header = 256;

/// For when there is no memory: enough for std::bad_alloc in many threads at a time.
struct Reserve {
  static constexpr std::size_t count = 64, bytes = header + 256;
  struct Slot {
    alignas(std::max_align_t) unsigned char memory[bytes];
    std::atomic<bool> taken;
  } slots[count];

  void* take(std::size_t wanted) noexcept {
    if (wanted > bytes) return nullptr;
    for (Slot& slot : slots)
      if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true, std::memory_order_acquire))
        return slot.memory;
    return nullptr;
  }
  /// False: it is not from here.
  bool giveBack(const void* memory) noexcept {
    for (Slot& slot : slots)
      if (slot.memory == memory) return slot.taken.store(false, std::memory_order_release), true;
    return false;
  }
};
constinit Reserve reserve{};

void* headerAndMore(std::size_t bytes) noexcept {
  void* const memory = std::malloc(header + bytes);
  void* const found = memory ? memory : reserve.take(header + bytes);
  if (!found) std::terminate();  // as the run-time itself: the ABI knows no other answer
  return std::memset(found, 0, header);
}

void release(void* memory) noexcept {
  if (!reserve.giveBack(memory)) std::free(memory);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier)
namespace __gnu_cxx {
/// For programs that look for leaks: there is nothing to give back.
void __freeres();
void __freeres() {}
}  // namespace __gnu_cxx

extern "C" {

void* __cxa_allocate_exception(std::size_t bytes) noexcept;
void* __cxa_allocate_exception(std::size_t bytes) noexcept {
  return static_cast<unsigned char*>(headerAndMore(bytes)) + header;
}

void __cxa_free_exception(void* thrown) noexcept;
void __cxa_free_exception(void* thrown) noexcept {
  release(static_cast<unsigned char*>(thrown) - header);
}

/// A header alone: of an exception that is thrown again by another thread.
void* __cxa_allocate_dependent_exception() noexcept;
void* __cxa_allocate_dependent_exception() noexcept {
  return headerAndMore(0);
}

void __cxa_free_dependent_exception(void* dependent) noexcept;
void __cxa_free_dependent_exception(void* dependent) noexcept {
  release(dependent);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
