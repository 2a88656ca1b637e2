#include "base/log.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/config_file.h"
#include "base/owned.h"

namespace falcon::log {
namespace {

struct Sink {
  std::mutex mutex;
  FileDescriptor file;  // empty: stderr
  std::string host;
};

// Never destroyed: threads of the job may log while the process exits.
Sink& sink() {
  static Sink* one = new Sink;
  return *one;
}

std::atomic<int> currentLevel{-1};
thread_local std::string threadLastError;

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = "unknown";
  gethostname(name, sizeof name - 1);
  if (char* dot = std::strchr(name, '.')) *dot = 0;
  return name;
}

Level parse(const std::string& text) {
  if (strcasecmp(text.c_str(), "VERSION") == 0) return Level::version;
  if (strcasecmp(text.c_str(), "WARN") == 0) return Level::warn;
  if (strcasecmp(text.c_str(), "INFO") == 0) return Level::info;
  if (strcasecmp(text.c_str(), "ABORT") == 0 || strcasecmp(text.c_str(), "TRACE") == 0) return Level::trace;
  return Level::none;
}

// NCCL_DEBUG_FILE: %h is the host, %p the process, %% a percent sign.
std::string expand(const std::string& pattern, const std::string& host) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'h':
        path += host;
        break;
      case 'p':
        path += std::to_string(getpid());
        break;
      case '%':
        path += '%';
        break;
      default:
        path += '%', path += pattern[i];
    }
  }
  return path;
}

void open(Sink& sink) {
  sink.host = hostName();
  sink.file.reset();
  const Level level = parse(configured("NCCL_DEBUG").value_or(""));
  const auto pattern = configured("NCCL_DEBUG_FILE");
  if (pattern && level > Level::version) {
    const std::string path = expand(*pattern, sink.host);
    sink.file.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  }
  currentLevel.store(static_cast<int>(level), std::memory_order_release);
}

}  // namespace

Level level() {
  int known = currentLevel.load(std::memory_order_acquire);
  if (known < 0) [[unlikely]] {
    const std::lock_guard lock(sink().mutex);
    if (currentLevel.load(std::memory_order_relaxed) < 0) open(sink());
    known = currentLevel.load(std::memory_order_relaxed);
  }
  return static_cast<Level>(known);
}

void reset() {
  currentLevel.store(-1, std::memory_order_release);
}

void write(Level lineLevel, std::string_view message) {
  level();
  const char* word = lineLevel == Level::warn ? "WARN" : lineLevel == Level::trace ? "TRACE" : "INFO";
  Sink& out = sink();
  const std::lock_guard lock(out.mutex);
  const std::string line =
      fmt::format("{}:{}:{} [-1] NCCL {} {}\n", out.host, getpid(), syscall(SYS_gettid), word, message);
  const int file = out.file ? out.file.get() : STDERR_FILENO;
  // One write call a line, so that lines of many ranks do not mix.
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
}

void setLastError(std::string_view message) {
  threadLastError = message;
}

const char* lastError() {
  return threadLastError.c_str();
}

Error decided(Error error) {
  setLastError(error.message());
  warn("{}", error.message());
  return error;
}

}  // namespace falcon::log
