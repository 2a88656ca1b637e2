// The names of a job that is started again and again.
#pragma once

#include <string>
#include <vector>

namespace falcon::control {

/// This job's name, and those of the attempts before it, the newest first: torchrun numbers them (its id, a dot and
/// TORCHELASTIC_RESTART_COUNT, see jobNameFromEnvironment()).
std::vector<std::string> attemptsOf(const std::string& job);

}  // namespace falcon::control
