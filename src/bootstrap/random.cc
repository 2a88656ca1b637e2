#include "bootstrap/random.h"

#include <sys/random.h>

#include <cerrno>

namespace falcon::bootstrap {
namespace {

// The finalizer of SplitMix64: every bit of the input changes half of the output's.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

void fill(void* bytes, std::size_t count) {
  // Up to 256 bytes come whole; only a signal before the generator is seeded (early boot) interrupts.
  while (getrandom(bytes, count, 0) != static_cast<ssize_t>(count))
    if (errno != EINTR) return;
}

}  // namespace

std::uint64_t randomNumber() {
  std::uint64_t value = 0;
  fill(&value, sizeof value);
  return value;
}

transport::Secret randomSecret() {
  transport::Secret secret{};
  fill(secret.data(), secret.size());
  return secret;
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
