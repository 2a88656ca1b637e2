#include "plugin/plugin_log.h"

#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "base/log.h"

namespace falcon::plugin {
namespace {

log::Level levelOf(LogLevel level) {
  switch (level) {
    case LogLevel::none:
    case LogLevel::version:
      return log::Level::version;
    case LogLevel::warn:
    case LogLevel::abort:
      return log::Level::warn;
    case LogLevel::info:
      return log::Level::info;
    case LogLevel::trace:
      break;
  }
  return log::Level::trace;
}

}  // namespace

void logForPlugin(LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (!format || !log::on(levelOf(level))) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  std::string_view line(text);
  while (line.ends_with('\n')) line.remove_suffix(1);
  log::write(levelOf(level), line);
}

}  // namespace falcon::plugin
