// What the members of a communicator and their center say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace falcon::bootstrap {

struct StarMessage {
  enum class Kind : std::uint8_t {
    // member to center
    gather,  ///< sequence, texts = {mine}
    late,    ///< sequence, texts = {how long was waited}
    abort,   ///< texts = {why}
    goodbye,
    noted,  ///< of left{the rank that the center lives with}
    // center to member
    start,        ///< all are connected
    gathered,     ///< sequence, texts by rank
    unavailable,  ///< sequence, texts = {why nobody can gather}
    left,         ///< rank
    goodbyeDone,
    failed  ///< texts = {what broke the communicator}
  };
  Kind kind = Kind::goodbye;
  std::uint64_t sequence = 0;
  Rank rank = -1;
  std::vector<std::string> texts;

  std::string encode() const;
  static bool decode(std::string_view bytes, StarMessage& message);
};

}  // namespace falcon::bootstrap
