// Bytes that nobody can guess, from the kernel's generator.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "base/result.h"

namespace falcon {

/// All of `bytes`, or an error (system): the kernel is too old, or a policy forbids the call. Then there is no other
/// source, and what must not be guessed cannot be made.
Status fillRandom(std::span<std::byte> bytes);

/// A value all of whose bits are random.
template <class T>
Result<T> randomValue() {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  if (const Status filled = fillRandom(std::as_writable_bytes(std::span(&value, 1))); !filled) return filled.error();
  return value;
}

}  // namespace falcon
