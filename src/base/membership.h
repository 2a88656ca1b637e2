// A rank's part in a communicator, as those see it who look on and move nothing.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/types.h"

namespace falcon {

enum class EngineKind : std::uint8_t { host, vendor };

/// Thread-safe.
class Membership {
 public:
  virtual ~Membership() = default;

  /// Who moves the communicator's data.
  virtual EngineKind kind() const = 0;
  virtual CommunicatorId id() const = 0;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  /// -1: not known, or not yet.
  virtual int device() const = 0;
  /// Number the next collective will get; counts collectives only.
  virtual std::uint64_t nextCollective() const = 0;
  /// Stops running operations, now and for good.
  virtual Status abort() = 0;
};

}  // namespace falcon
