#include "api/registrations.h"

#include <atomic>
#include <cstdint>

#include "base/log.h"

namespace falcon::api {

void* Registrations::add(const Registration& registration, void* vendorHandle) {
  // Numbers, not addresses: an address would come back after it was freed.
  static std::atomic<std::uintptr_t> next{1};
  void* const handle =
      vendorHandle ? vendorHandle : reinterpret_cast<void*>(next.fetch_add(2, std::memory_order_relaxed));
  const std::lock_guard lock(mutex_);
  known_.emplace(handle, registration);
  return handle;
}

std::optional<Registration> Registrations::look(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(handle);
  if (found == known_.end()) return {};
  return found->second;
}

Result<Registration> Registrations::find(const char* function, const char* what, const void* handle) const {
  if (const auto found = look(handle)) return *found;
  return log::decided(Error::invalidUsage("{}: {} is no {} of this communicator (given back before, or another one's?)",
                                          function, handle, what));
}

Result<Registration> Registrations::remove(const char* function, const char* what, const void* handle) {
  auto removed = find(function, what, handle);
  if (!removed) return removed;
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(handle); found != known_.end()) known_.erase(found);
  return removed;
}

}  // namespace falcon::api
