#include "reshape/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace falcon::reshape {

struct Checksum::State {
  XXH3_state_t xxh;
};

Checksum::Checksum() : state_(new State) {
  XXH3_64bits_reset(&state_->xxh);
}

Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const {
  return XXH3_64bits_digest(&state_->xxh);
}

std::uint64_t Checksum::of(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace falcon::reshape
