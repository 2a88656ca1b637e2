// Buffers and windows that an application has registered with a communicator. The host engine needs no registration:
// this is the book that says which handles are good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/result.h"

namespace falcon::api {

struct Registration {
  const void* address = nullptr;
  std::size_t size = 0;
  bool atVendor = false;     ///< registered with the vendor's engine, under the same handle
  std::uint64_t number = 0;  ///< of a window on host memory: what the other ranks know it by
};

/// Thread-safe. Its own handles are never given twice in a process, so that one that was given back is known for what
/// it is.
class Registrations {
 public:
  /// Gives the handle: `vendorHandle` where there is one (the vendor may give the same several times).
  void* add(const Registration& registration, void* vendorHandle = nullptr);
  /// Errors (invalidUsage): unknown, or given back before. `what`: of what the handle is.
  Result<Registration> remove(const char* function, const char* what, const void* handle);
  std::optional<Registration> look(const void* handle) const;
  Result<Registration> find(const char* function, const char* what, const void* handle) const;

 private:
  mutable std::mutex mutex_;
  std::multimap<const void*, Registration> known_;
};

}  // namespace falcon::api
