#include "front/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "front/atomics.h"

namespace falcon::front {
namespace {

void writeLine(const char* text) {
  char line[512];
  const int length = snprintf(line, sizeof line, "[%d] NCCL WARN NCCL Falcon: %s\n", static_cast<int>(getpid()), text);
  if (length > 0 && write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) return;
}

}  // namespace

void say(const char* text) {
  static Atomic<const char*> said[64];
  for (auto& each : said) {
    if (each.load() == text) return;
    if (each.replace(nullptr, text)) break;
    if (each.load() == text) return;
  }
  writeLine(text);
}

void sayOfCall(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  writeLine(text);
}

}  // namespace falcon::front
