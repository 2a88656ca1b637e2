// What frameworks are told of the job's state: NCCL_FALCON_HEALTH_...
#pragma once

#include <cstdint>

#include "instrument/call_log_format.h"

namespace falcon::control {

enum class Health : int { unknown, healthy, suspected, slow };

/// @param failSlows  ranks, links and hosts that were named and are not healthy again
constexpr Health healthOf(instrument::JobState state, std::uint32_t failSlows) {
  using instrument::JobState;
  if (state == JobState::off) return Health::unknown;
  if (failSlows > 0) return Health::slow;
  if (state == JobState::starting) return Health::unknown;
  return state == JobState::profiling || state == JobState::validating ? Health::suspected : Health::healthy;
}

}  // namespace falcon::control
