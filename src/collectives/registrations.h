// Buffers and windows that an application has registered with a communicator of host memory. The engine needs no
// registration: this is the book that says which handles are good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/result.h"

namespace falcon::collectives {

/// What nccl.h asks of windows; src/api compares it with that.
inline constexpr int symmetricWindow = 0x01;
inline constexpr std::size_t windowAlignment = 4096;

struct Registration {
  void* address = nullptr;
  std::size_t size = 0;
  std::uint64_t number = 0;  ///< of a window: what the other ranks know it by
};

/// Thread-safe. Handles are never given twice in a process, so that one that was given back is known for what it is.
class Registrations {
 public:
  void* add(const Registration& registration);
  /// Errors (invalidUsage): unknown, or given back before. `what`: of what the handle is.
  Result<Registration> remove(const char* function, const char* what, const void* handle);
  Result<Registration> find(const char* function, const char* what, const void* handle) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, Registration> known_;
};

}  // namespace falcon::collectives
