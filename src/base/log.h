// Logging in NCCL's line format: `host:pid:tid [dev] NCCL INFO msg`. Obeys NCCL_DEBUG and NCCL_DEBUG_FILE.
// Takes no lock, so that a child forked while another thread logs can log too.
// Never writes to stdout unless NCCL_DEBUG_FILE says so; the default is stderr.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/result.h"

namespace falcon::log {

enum class Level { none, version, warn, info, trace };

/// Level in force, from NCCL_DEBUG at first use (default: none, but Falcon's own WARNs are shown; see warn()).
Level level();
inline bool on(Level wanted) {
  return level() >= wanted;
}

/// Writes one line. `device` -1 prints as "[-1]".
void write(Level level, std::string_view message);

/// What NCCL_DEBUG is set to, where that is no level: then it is as if it were not set.
std::optional<std::string> unknownLevel();

/// Reads NCCL_DEBUG and NCCL_DEBUG_FILE again at the next line.
void reset();

/// The text of the last error this thread or process decided, for ncclGetLastError. Never null.
void setLastError(std::string_view message) noexcept;
const char* lastError();

template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  if (on(Level::info)) write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void trace(fmt::format_string<Args...> text, Args&&... args) {
  if (on(Level::trace)) write(Level::trace, fmt::format(text, std::forward<Args>(args)...));
}
/// As NCCL: shown from NCCL_DEBUG=WARN on.
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  if (on(Level::warn)) write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}
/// A feature of Falcon's was turned off or misconfigured: shown whatever NCCL_DEBUG says, so that nobody wonders.
template <class... Args>
void notice(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}

/// For the place that decides an error: logs it as a WARN, keeps it for ncclGetLastError, gives it back to be returned.
Error decided(Error error);

}  // namespace falcon::log
