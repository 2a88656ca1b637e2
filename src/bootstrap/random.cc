#include "bootstrap/random.h"

#include <algorithm>

#include "base/random.h"
#include "base/sha256.h"
#include "base/wire.h"

namespace falcon::bootstrap {
namespace {

// The finalizer of SplitMix64: every bit of the input changes half of the output's.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

Result<std::uint64_t> randomNumber() {
  return randomValue<std::uint64_t>();
}

Result<transport::Secret> randomSecret() {
  return randomValue<transport::Secret>();
}

transport::Secret derivedSecret(const transport::Secret& secret, std::string_view use, std::uint64_t number) {
  const Digest digest = hmacSha256(secret, WireWriter().put(use).put(number).bytes());
  transport::Secret derived;
  std::copy_n(digest.begin(), derived.size(), derived.begin());
  return derived;
}

std::uint64_t hashOf(std::initializer_list<std::uint64_t> values) {
  std::uint64_t hash = values.size();
  for (const std::uint64_t value : values) hash = mix(hash ^ mix(value));
  return hash;
}

std::uint64_t hashOf(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char byte : text) hash = mix(hash ^ static_cast<unsigned char>(byte));
  return hash;
}

}  // namespace falcon::bootstrap
