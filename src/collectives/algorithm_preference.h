// NCCL_ALGO and NCCL_PROTO: which algorithms and protocols a user prefers, by operation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/call.h"
#include "base/result.h"

namespace falcon::collectives {

/// One bit for every word of a list, by operation.
struct PreferenceMasks {
  static constexpr std::uint8_t everything = 0xff;
  std::array<std::uint8_t, operationCount> of = filled();

  std::uint8_t operator[](Operation operation) const { return of[static_cast<std::size_t>(operation)]; }
  bool operator==(const PreferenceMasks&) const = default;

 private:
  static constexpr std::array<std::uint8_t, operationCount> filled() {
    std::array<std::uint8_t, operationCount> all{};
    all.fill(everything);
    return all;
  }
};

/// Reads NCCL's syntax: `list;operation:list;...`, the first list (for all operations) or the others may be missing; a
/// list is `word,word` (only these) or `^word,word` (all but these). Case does not matter. Errors (invalidUsage, not
/// logged): an unknown word or operation, or a later list without an operation.
Result<PreferenceMasks> parsePreferences(std::string_view text, std::span<const char* const> words);

/// The words of NCCL_ALGO and NCCL_PROTO; their places are the bits.
std::span<const char* const> algorithmWords();
std::span<const char* const> protocolWords();
/// The bit of an algorithm's name; 0 for names that NCCL does not have.
std::uint8_t algorithmBit(std::string_view name);

/// What the environment says of algorithms. What the host engine cannot follow is told once in an INFO line, a text
/// that cannot be read in a notice; of NCCL_PROTO, too, of which the host engine has Simple only.
PreferenceMasks preferencesFromEnvironment();

/// What all members prefer. Where they have nothing in common, no preference.
PreferenceMasks agreedPreferences(const PreferenceMasks& one, const PreferenceMasks& other);

}  // namespace falcon::collectives
