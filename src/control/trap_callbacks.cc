#include "control/trap_callbacks.h"

#include <algorithm>

#include "base/applications_callback.h"
#include "base/per_process.h"

namespace falcon::control {
namespace {

constinit PerProcess<TrapCallbacks> ours;

FALCON_CALLS_APPLICATION void tellApplication(TrapCallbacks::Callback callback, int held, unsigned milliseconds,
                                              void* context) {
  callback(held, milliseconds, context);
  FALCON_CALLBACK_ENDS;
}

}  // namespace

TrapCallbacks& TrapCallbacks::ofProcess() {
  return ours.get();
}

void TrapCallbacks::add(Callback callback, void* context) {
  const std::lock_guard lock(mutex_);
  callbacks_.emplace_back(callback, context);
}

bool TrapCallbacks::remove(Callback callback, void* context) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(callbacks_.rbegin(), callbacks_.rend(), std::pair(callback, context));
  if (found == callbacks_.rend()) return false;
  callbacks_.erase(std::next(found).base());
  return true;
}

void TrapCallbacks::call(Held held, Nanoseconds limit) {
  const std::lock_guard lock(mutex_);
  const auto milliseconds = static_cast<unsigned>(std::chrono::ceil<std::chrono::milliseconds>(limit).count());
  for (const auto& [callback, context] : std::vector(callbacks_))
    tellApplication(callback, static_cast<int>(held), milliseconds, context);
}

}  // namespace falcon::control
