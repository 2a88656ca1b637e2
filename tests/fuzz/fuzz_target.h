// What every target has: see README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace falcon::fuzz {

/// Defined by each target.
void run(std::string_view input);
std::vector<std::string> seeds();

/// Ends the program with `promise` where it does not hold.
void require(bool holds, const char* promise);

/// What was accepted is written as it would be sent, is accepted again, and is written the same way.
template <class Decode, class Encode>
void requireRoundTrip(std::string_view input, Decode decode, Encode encode) {
  const auto value = decode(input);
  if (!value) return;
  const std::string written = encode(*value);
  const auto again = decode(written);
  require(static_cast<bool>(again), "what was accepted is accepted again");
  require(encode(*again) == written, "what was accepted keeps its meaning");
}

}  // namespace falcon::fuzz
