// Calls that a vendor's library makes of its own functions by their exported names. Where this library was loaded first
// they come to us; they are told by the return address, and go straight on.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/vendor_library.h"

namespace falcon::gpu {

/// A piece of the address space, written once and read at any time.
class CodeRange {
 public:
  bool has(const void* address) const {
    const auto size = size_.load(std::memory_order_acquire);
    return reinterpret_cast<std::uintptr_t>(address) - begin_.load(std::memory_order_relaxed) < size;
  }
  /// Once. Until then it has nothing.
  void set(std::uintptr_t begin, std::uintptr_t end) {
    begin_.store(begin, std::memory_order_relaxed);
    size_.store(end - begin, std::memory_order_release);
  }

 private:
  std::atomic<std::uintptr_t> begin_{0}, size_{0};
};

/// The first object whose calls are the application's: most processes have one.
inline constinit CodeRange applicationsCode;

/// The same for all others: a place that calls for the first time is looked at.
void* askWhoCalls(const void* caller);

/// The vendor's library on whose behalf the code at a return address calls us: the one that lies there, whoever opened
/// it, or, where it lies in this library, the one that we drive: who jumps to an exported function, instead of calling
/// it, leaves the address of its own caller. Null: the application calls. One comparison for most.
inline void* vendorCalling(const void* caller) {
  return applicationsCode.has(caller) ? nullptr : askWhoCalls(caller);
}

/// From now on this is the library that we drive. The first one stays: a process drives one.
void tellCallsOf(const VendorLibrary& library);

/// A function by its exported name, in whatever library of a vendor's it is asked for. Looked up once for the
/// first of them.
class FunctionByName {
 public:
  explicit constexpr FunctionByName(const char* name) : name_(name) {}
  /// Null: that library has none.
  void* in(void* library);

 private:
  const char* const name_;
  std::atomic_flag isKept_;
  std::atomic<void*> library_{nullptr}, function_{nullptr};
};

}  // namespace falcon::gpu
