// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). Of our own, since a library of cryptography that we brought along
// could clash with the one that the training process has loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace falcon {

using Digest = std::array<std::byte, 32>;

/// Takes a message in pieces. Allocates nothing.
class Sha256 {
 public:
  Sha256& add(std::span<const std::byte> bytes);
  Sha256& add(std::string_view text) { return add(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Of all that was added; the last call on this object.
  Digest finish();

 private:
  static constexpr std::size_t blockBytes = 64;
  void takeBlock(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, blockBytes> block_{};
  std::size_t inBlock_ = 0;
  std::uint64_t bytes_ = 0;
};

/// A keyed hash: who does not know `key` can neither compute nor guess it, whatever other messages' it has seen.
Digest hmacSha256(std::span<const std::byte> key, std::string_view message);

/// Takes the same time wherever they differ. Sequences of different lengths are not equal.
bool equalInConstantTime(std::span<const std::byte> one, std::span<const std::byte> other);

}  // namespace falcon
