// XXH3 (xxHash, 64 bits): finds what a disk or a network changed; about as fast as memory. It is no signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace falcon::reshape {

/// Of a message that comes in pieces. Used by one thread.
class Checksum {
 public:
  Checksum();  ///< throws std::bad_alloc
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Of all that was added so far.
  std::uint64_t value() const;

  static std::uint64_t of(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace falcon::reshape
