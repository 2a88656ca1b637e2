// What will be needed soon.
#pragma once

namespace falcon {

/// Asks for a cache line that will be written. The builtin asks for one to read on x86-64's common ground.
inline void prefetchForWriting(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace falcon
