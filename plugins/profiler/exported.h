// What the exported structs of all versions have alike: nothing is thrown into NCCL.
#pragma once

#include "profiler/plugin.h"

namespace falcon::profiler {

plugin::ResultCode begin(const plugin::ProfiledCommunicator& communicator, void** context, int* mask) noexcept;
plugin::ResultCode stopEvent(void* handle);
plugin::ResultCode recordEventState(void* handle, plugin::EventState state, plugin::StateArguments* arguments);
plugin::ResultCode finalize(void* context);

}  // namespace falcon::profiler
