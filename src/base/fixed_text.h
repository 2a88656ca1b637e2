// Text in a field of fixed size, as files and shared memory have it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace falcon {

/// What does not fit is left out; ends with a zero.
template <std::size_t size>
void copyText(char (&to)[size], std::string_view from) {
  const std::size_t length = std::min(from.size(), size - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

}  // namespace falcon
