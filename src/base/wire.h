// Messages between our own processes: little-endian fields, read defensively. Never trust a length from outside.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace falcon {

/// Appends fields to a byte string.
class WireWriter {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) WireWriter& put(T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    bytes_.append(bytes, sizeof value);
    return *this;
  }
  WireWriter& put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes fields off a byte string. After the first field that is not there, `ok()` is false and all fields read as
/// zero.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T get() {
    if constexpr (std::is_same_v<T, bool>)
      return get<std::uint8_t>() != 0;  // any other byte pattern in a bool is undefined
    T value{};
    if (rest_.size() < sizeof value) return fail(), value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string getString() {
    const auto length = get<std::uint32_t>();
    if (rest_.size() < length) return fail(), std::string();
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }
  /// A count of items of at least `itemBytes` bytes each: never more than the rest of the message can hold.
  std::uint32_t getCount(std::size_t itemBytes) {
    const auto count = get<std::uint32_t>();
    if (count * itemBytes > rest_.size()) return fail(), 0;
    return count;
  }
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace falcon
