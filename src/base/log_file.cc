#include "base/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace falcon::log {
namespace {

bool isOpenAt(int file, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

void copyLog(const std::string& from, int to) {
  const FileDescriptor source = newDescriptor(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[4096];
  for (ssize_t length = 0; source && (length = ::read(source.get(), bytes, sizeof bytes)) > 0;)
    if (::write(to, bytes, static_cast<std::size_t>(length)) != length) return;
}

FileDescriptor begunFile(const std::string& path) {
  emptyFile(path);
  return appendedFile(path);
}

}  // namespace

std::string expanded(const std::string& pattern, const std::string& host) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
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

std::string besideVendors(const std::string& path) {
  const std::string_view name = path;
  // /dev/stderr, say, which may be a link to a file: nobody wants a file beside it.
  if ((name.starts_with("/dev/") && !name.starts_with("/dev/shm/")) || name.starts_with("/proc/")) return path;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) return path;
  return path + ".falcon";
}

void emptyFile(const std::string& path) {
  newDescriptor(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
}

FileDescriptor appendedFile(const std::string& path) {
  return newDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

std::optional<FileDescriptor> movedFile(int file, const std::string& from, const std::string& to) {
  if (isOpenAt(file, to)) return std::nullopt;  // another thread was faster, or a process that shares the file
  if (!isOpenAt(file, from)) return begunFile(to);
  // By a link, which replaces nothing: what lies there may be the log of another process that has the same name for it.
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return std::nullopt;
  }
  if (isOpenAt(file, to)) return std::nullopt;
  // A log of an earlier run is emptied, as ever; and not every file system has links.
  FileDescriptor begun = begunFile(to);
  if (begun) copyLog(from, begun.get());
  return begun;
}

}  // namespace falcon::log
