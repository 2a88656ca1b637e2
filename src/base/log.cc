#include "base/log.h"

#include <signal.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/config_file.h"
#include "base/contained.h"
#include "base/escaped.h"
#include "base/log_file.h"
#include "base/log_receiver.h"

namespace falcon::log {
namespace {

constexpr int notOpened = -1;

/// Where lines go; once others can see it, only `file` changes, and once. No lock anywhere: a child that is forked
/// while another thread logs must be able to log too.
struct Sink {
  Level level = Level::none;
  std::string host;
  std::string path;  ///< "": stderr
  /// Made for the first line: who has nothing to say leaves no file.
  mutable std::atomic<int> file{STDERR_FILENO};
  const Sink* before =
      nullptr;  ///< the one that this replaced; left as it is, since another thread may be writing to it
};

std::atomic<const Sink*> current{nullptr};
std::atomic<bool> outdated{false};
std::atomic<bool> besideVendor{false};  ///< its NCCL is in this process
std::atomic<Receiver> receiver{nullptr};
thread_local std::string threadLastError;

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = "unknown";
  gethostname(name, sizeof name - 1);
  if (char* dot = std::strchr(name, '.')) *dot = 0;
  return name;
}

std::optional<Level> parse(const std::string& text) {
  if (text.empty()) return Level::none;
  if (strcasecmp(text.c_str(), "VERSION") == 0) return Level::version;
  if (strcasecmp(text.c_str(), "WARN") == 0) return Level::warn;
  if (strcasecmp(text.c_str(), "INFO") == 0) return Level::info;
  if (strcasecmp(text.c_str(), "ABORT") == 0 || strcasecmp(text.c_str(), "TRACE") == 0) return Level::trace;
  return std::nullopt;
}

/// What is there already of the file. The one in use stays in use: neither a reset nor a forked child empties it.
int fileAt(const std::string& path, const std::string& given, const Sink* before) {
  const int used = before ? before->file.load() : notOpened;
  if (before && before->path == path) return used;
  if (before && before->path == given && used != notOpened) {
    auto moved = movedFile(used, given, path);
    return moved ? moved->release() : used;
  }
  emptyFile(path);  // of an earlier run
  return notOpened;
}

std::unique_ptr<Sink> opened(const Sink* before) {
  auto sink = std::make_unique<Sink>();
  sink->before = before;
  sink->host = hostName();
  sink->level = parse(configured("NCCL_DEBUG").value_or("")).value_or(Level::none);
  const auto pattern = configured("NCCL_DEBUG_FILE");
  if (!pattern || sink->level <= Level::version) return sink;
  const std::string given = expanded(*pattern, sink->host);
  sink->path = besideVendor.load() ? besideVendors(given) : given;
  sink->file = fileAt(sink->path, given, before);
  return sink;
}

const Sink& sink() {
  const Sink* known = current.load(std::memory_order_acquire);
  if (known && !outdated.load(std::memory_order_relaxed)) [[likely]]
    return *known;
  outdated.store(false, std::memory_order_relaxed);
  auto fresh = opened(known);
  const Sink* before = known;
  if (current.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  // Another thread was faster.
  const int file = fresh->file;
  if (!fresh->path.empty() && file != notOpened && (!before || before->file != file)) ::close(file);
  return *known;
}

/// stderr where the file cannot be made.
int fileOf(const Sink& sink) {
  int file = sink.file.load(std::memory_order_acquire);
  if (file != notOpened) [[likely]]
    return file;
  FileDescriptor made = appendedFile(sink.path);
  if (!sink.file.compare_exchange_strong(file, made ? made.get() : STDERR_FILENO)) return file;
  return made ? made.release() : STDERR_FILENO;
}

/// A log that nobody reads any more (a pipe to a process that has ended), or that has grown to the limit of file sizes,
/// must not end the job by a signal.
void writeQuietly(int file, const std::string& line) {
  sigset_t deadly, before, pending;
  sigemptyset(&deadly);
  sigaddset(&deadly, SIGPIPE);
  sigaddset(&deadly, SIGXFSZ);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &deadly, &before);
  const bool written = ::write(file, line.data(), line.size()) >= 0;
  const int signal = written ? 0 : errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
  if (signal != 0 && !sigismember(&pending, signal)) {
    const timespec now{};
    sigtimedwait(&deadly, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

Level level() {
  return receiver.load(std::memory_order_relaxed) ? Level::info : sink().level;
}

std::optional<std::string> unknownLevel() {
  auto given = configured("NCCL_DEBUG");
  return given && !parse(*given) ? std::move(given) : std::nullopt;
}

void reset() {
  outdated.store(true, std::memory_order_release);
}

void makeRoomForVendor() {
  if (besideVendor.exchange(true) || receiver.load(std::memory_order_relaxed)) return;
  reset();
  // Lines that are there move at once: the vendor empties the file at its first one, which may come before ours.
  if (current.load(std::memory_order_acquire)) sink();
}

void handOver(Receiver to) {
  receiver.store(to, std::memory_order_release);
}

void write(Level lineLevel, std::string_view message) {
  if (const Receiver its = receiver.load(std::memory_order_acquire)) return its(lineLevel, terminalText(message));
  const char* word = lineLevel == Level::warn ? "WARN" : lineLevel == Level::trace ? "TRACE" : "INFO";
  const Sink& out = sink();
  const std::string line =
      fmt::format("{}:{}:{} [-1] NCCL {} {}\n", out.host, getpid(), syscall(SYS_gettid), word, terminalText(message));
  // One write call a line, so that lines of many threads and ranks do not mix.
  writeQuietly(fileOf(out), line);
}

void setLastError(std::string_view message) noexcept {
  constexpr const char* shortest = "out of memory";  // needs none itself
  if (!contained([&] { threadLastError = message; }, [](const char*) {})) threadLastError = shortest;
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
