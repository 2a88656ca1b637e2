#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/owned.h"
#include "base/system_error.h"

namespace falcon {
namespace {

Error tooLong(const std::string& name, std::size_t limit) {
  return Error::invalidArgument("{} has more than {} bytes, which is the most that is read; give a shorter file", name,
                                limit);
}

// What fstat says of the size is no bound: the file may grow, and those of /proc have 0.
Result<std::string> readAll(int descriptor, const std::string& name, std::size_t limit) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::system("{} cannot be read: {}", name, reasonOf(errno));
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > limit) return tooLong(name, limit);
  }
}

}  // namespace

Result<std::string> readInputFile(const std::string& path, std::size_t limit) {
  // Without O_NONBLOCK opening a pipe waits for somebody who writes; one without a writer is empty.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return Error::system("{} cannot be opened: {}", path, reasonOf(errno));
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return Error::system("{} cannot be read: {}", path, reasonOf(errno));
  if (!S_ISREG(facts.st_mode) && !S_ISFIFO(facts.st_mode))
    return Error::invalidArgument("{} is a folder or device; copy what is meant into a file", path);
  if (S_ISREG(facts.st_mode) && static_cast<std::size_t>(facts.st_size) > limit) return tooLong(path, limit);
  if (S_ISFIFO(facts.st_mode) && fcntl(file.get(), F_SETFL, O_RDONLY) != 0)
    return Error::system("{} cannot be read: {}", path, reasonOf(errno));
  return readAll(file.get(), path, limit);
}

Result<std::string> readStandardInput(std::size_t limit) {
  return readAll(STDIN_FILENO, "standard input", limit);
}

}  // namespace falcon
