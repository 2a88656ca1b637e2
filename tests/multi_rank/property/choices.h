// Chance that every rank computes alike: all follows from numbers, nothing from a state that ranks would have to share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace falcon::property {

/// splitmix64's finaliser.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

class Choices {
 public:
  explicit Choices(std::uint64_t seed, std::uint64_t stream = 0) : state_(mix(seed) ^ mix(~stream)) {}

  std::uint64_t bits() { return mix(state_++); }
  /// In [0, limit).
  std::size_t below(std::size_t limit) { return bits() % limit; }
  bool oneIn(std::size_t times) { return below(times) == 0; }
  template <class T, std::size_t size>
  const T& of(const T (&list)[size]) {
    return list[below(size)];
  }

 private:
  std::uint64_t state_;
};

}  // namespace falcon::property
