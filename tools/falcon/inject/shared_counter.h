// A number that a guardian's process counts up and its owner reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace falcon::tools {

/// In memory that a forked process shares with us.
using SharedCounter = std::shared_ptr<std::atomic<std::uint64_t>>;
Result<SharedCounter> makeSharedCounter();

}  // namespace falcon::tools
