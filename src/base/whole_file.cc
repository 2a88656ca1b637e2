#include "base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/format.h"
#include "base/owned.h"
#include "base/system_error.h"

namespace falcon {

Status writeWhole(const std::string& path, std::string_view content) {
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  const FileDescriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::system("{} cannot be written: {}", fresh, reasonOf(errno));
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t now = ::write(file.get(), content.data() + written, content.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) break;
    written += static_cast<std::size_t>(now);
  }
  if (written == content.size() && std::rename(fresh.c_str(), path.c_str()) == 0) return {};
  const int reason = errno;
  ::unlink(fresh.c_str());
  return Error::system("{} cannot be written: {}", path, reasonOf(reason));
}

}  // namespace falcon
