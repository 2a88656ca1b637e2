// Our profiler plugin for the vendor's library in this process.
#pragma once

namespace falcon::control {

/// Before the vendor's library looks for a profiler, with its first communicator: where nobody has named one, it will
/// find ours, which is loaded here and calls itself by the name that is looked for then. The environment is not
/// changed: other threads may be reading it. Where the program has one of its own, that keeps the one place there is,
/// and a line says how to have both. Once a process, with Falcon on; may throw std::exception.
/// @param build  FALCON_BUILD of the caller: a plugin of another build is not used
void offerProfiler(const char* build);

}  // namespace falcon::control
