#include "profiler/exported.h"

#include "base/contained.h"
#include "base/log.h"

namespace falcon::profiler {

plugin::ResultCode begin(const plugin::ProfiledCommunicator& communicator, void** context, int* mask) noexcept {
  plugin::ResultCode result = plugin::internalError;
  contained(
      [&] { result = processObserver().init(communicator, context, mask); },
      [](const char* why) { log::notice("Falcon's profiler plugin cannot start: {}; NCCL goes on without", why); });
  return result;
}

plugin::ResultCode stopEvent(void* handle) {
  return currentObserver().stop(handle);
}

plugin::ResultCode recordEventState(void* handle, plugin::EventState state, plugin::StateArguments* arguments) {
  return currentObserver().state(handle, state, arguments);
}

plugin::ResultCode finalize(void* context) {
  plugin::ResultCode result = plugin::success;
  contained([&] { result = currentObserver().finalize(context); }, [](const char*) {});
  return result;
}

}  // namespace falcon::profiler
