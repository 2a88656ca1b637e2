// How the front speaks: lines in NCCL's format on standard error.
#pragma once

namespace falcon::front {

/// Each text once a process.
void say(const char* text);

/// Every time: what a call of the application's got wrong.
__attribute__((format(printf, 1, 2))) void sayOfCall(const char* format, ...);

}  // namespace falcon::front
