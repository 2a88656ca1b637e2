// What all kinds of NCCL's plugins have in common, written from its documented facts. Plain C types: plugins that are
// built here include these headers too.
#pragma once

namespace falcon::plugin {

/// ncclResult_t.
using ResultCode = int;
inline constexpr ResultCode success = 0;
inline constexpr ResultCode internalError = 3;

/// Levels of a plugin's log lines.
enum class LogLevel : int { none = 0, version = 1, warn = 2, info = 3, abort = 4, trace = 5 };
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line, const char* format, ...);

}  // namespace falcon::plugin
