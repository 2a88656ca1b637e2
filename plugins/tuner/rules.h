// What a tuner is to steer away from: lines of a text, and what they make of a table of costs. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plugin/tuner/tuner_calls.h"

namespace falcon::tuner {

/// One line. It holds for calls that are like it, from the call of that number on: all ranks count alike, since all ask
/// for every collective of a communicator.
struct Rule {
  static constexpr int any = -1;
  int function = any;   ///< plugin::TunedFunction
  int algorithm = any;  ///< plugin::TunerAlgorithm
  int protocol = any;   ///< plugin::TunerProtocol
  int channels = 0;     ///< not 0: a wish for so many, and nothing to avoid
  std::size_t fromBytes = 0, toBytes = std::numeric_limits<std::size_t>::max();
  std::uint64_t fromCall = 0;
  int ranks = any;
};

/// `avoid FUNCTION ALGORITHM PROTOCOL [options]`, `channels FUNCTION COUNT [options]`; a `*` is any. Options:
/// `bytes=FROM-TO` (with k, M, G; either may be missing), `from=CALL`, `ranks=COUNT`. What follows a # is a remark.
/// Errors (invalidUsage, not logged): a line that says nothing of the kind; which, and why.
Result<std::vector<Rule>> parseRules(std::string_view text);

struct AskedCall {
  plugin::TunedFunction function;
  std::size_t bytes = 0;
  std::uint64_t number = 0;  ///< among the communicator's collectives
  int ranks = 1;
};

/// Takes away what is to be avoided, unless nothing would be left. Sets `channels` where there is a wish: the last
/// holds.
/// @param costs  algorithms rows of protocols floats; negative: not possible
void follow(const std::vector<Rule>& rules, const AskedCall& call, float* costs, int algorithms, int protocols,
            int* channels);

}  // namespace falcon::tuner
