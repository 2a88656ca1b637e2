#include "collectives/registrations.h"

#include <atomic>

#include "base/log.h"

namespace falcon::collectives {
namespace {

Error unknown(const char* function, const char* what, const void* handle) {
  return log::decided(Error::invalidUsage("{}: {} is no {} of this communicator (given back before, or another one's?)",
                                          function, handle, what));
}

}  // namespace

void* Registrations::add(const Registration& registration) {
  // Numbers, not addresses: an address would come back after it was freed.
  static std::atomic<std::uintptr_t> next{1};
  void* const handle = reinterpret_cast<void*>(next.fetch_add(2, std::memory_order_relaxed));
  const std::lock_guard lock(mutex_);
  known_.emplace(handle, registration);
  return handle;
}

Result<Registration> Registrations::find(const char* function, const char* what, const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(handle);
  if (found == known_.end()) return unknown(function, what, handle);
  return found->second;
}

Result<Registration> Registrations::remove(const char* function, const char* what, const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(handle);
  if (found == known_.end()) return unknown(function, what, handle);
  const Registration removed = found->second;
  known_.erase(found);
  return removed;
}

}  // namespace falcon::collectives
