// Calls that the vendor's library makes of its own functions by their exported names. Where this library was loaded
// first they come to us; they are told by the return address, and go straight on.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/vendor_library.h"

namespace falcon::gpu {

/// A piece of the address space, written once and read at any time.
class CodeRange {
 public:
  /// Where the object lies that has `address`; it stays loaded.
  void setToObjectOf(const void* address);
  bool has(const void* address) const {
    const auto begin = begin_.load(std::memory_order_relaxed);
    return reinterpret_cast<std::uintptr_t>(address) - begin < size_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uintptr_t> begin_{0}, size_{0};
};

/// The vendor's library of this process, and this library itself: who jumps to an exported function, instead of calling
/// it, leaves the address of its own caller, which is then ours.
inline constinit CodeRange vendorsCode, ownCode;

/// Whether the code at a return address calls us on behalf of the vendor's library. Two comparisons.
inline bool isVendorsOwn(const void* caller) {
  return vendorsCode.has(caller) || ownCode.has(caller);
}

/// From now on calls out of this library are told. The first one stays: a process drives one.
void tellCallsOf(const VendorLibrary& library);
/// A function of that library, by its exported name; null where it has none.
void* functionOfVendor(const char* name);

}  // namespace falcon::gpu
