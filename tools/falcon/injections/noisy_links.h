// Links whose speed is never the same.
#pragma once

#include <cstdint>
#include <optional>

#include "demo/schedule.h"
#include "inject/shared_counter.h"
#include "machine/description.h"
#include "machine/guardian.h"

namespace falcon::injections {

/// Every link of the gradients' rings, both directions, limited to a speed that moves by 5 % once a second.
/// Undone at its end, also when this process is killed.
class NoisyLinks {
 public:
  /// Throws std::runtime_error where the links cannot be limited.
  NoisyLinks(const tools::JobDescription& job, const demo::JobShape& shape, Link slow, std::uint64_t seed);
  /// From now on `slow` has a tenth of the others' speed.
  void slowOneDown() { *slowed_ = 1; }

 private:
  tools::SharedCounter slowed_;  // read by the guardian's process
  std::optional<tools::Guardian> guardian_;
};

}  // namespace falcon::injections
