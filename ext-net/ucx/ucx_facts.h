// What the two ends of a connection tell each other over TCP, so that their workers find each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace falcon::net {

struct UcxFacts {
  std::uint32_t major = 0, minor = 0;  ///< UCX's version
  /// Tag of the first message that this end receives, that of the next is one more. Random: who has not read it cannot
  /// send what would be taken for a message of this connection.
  std::uint64_t firstTag = 0;
  std::string address;  ///< the worker's

  /// Of the UCX that is loaded; no more yet.
  static UcxFacts ours();
  std::string text() const;
  /// Nothing: those are none, or of another release.
  static std::optional<UcxFacts> read(std::string_view text);
};

}  // namespace falcon::net
