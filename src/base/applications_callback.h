// Calls of the application's callbacks. The last statement of one may be a call of ours, which compilers make a jump:
// that leaves the address from which the callback was called, as one of the vendor's functions would that we called.
// Callbacks are called from code in a section of its own, by which the two are told apart (gpu/vendor_code.h,
// front/route.h).
#pragma once

/// Of a function that does nothing but call a callback.
#define FALCON_CALLS_APPLICATION __attribute__((noinline, section("falcon_callbacks")))
/// Stands in it behind the call, which must not be a jump.
#define FALCON_CALLBACK_ENDS asm volatile("")

extern "C" {
// The linker's; null where nothing is in that section.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-dynamic-static-initializers)
__attribute__((weak, visibility("hidden"))) extern const char __start_falcon_callbacks[];
__attribute__((weak, visibility("hidden"))) extern const char __stop_falcon_callbacks[];
// NOLINTEND(bugprone-reserved-identifier,bugprone-dynamic-static-initializers)
}

namespace falcon {

/// Whether a return address lies where this library calls callbacks.
inline bool isWhereCallbacksAreCalled(const void* address) {
  return address >= __start_falcon_callbacks && address < __stop_falcon_callbacks;
}

}  // namespace falcon
