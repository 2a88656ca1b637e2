#include "base/whole_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/own_folder.h"
#include "base/owned.h"
#include "base/system_error.h"

namespace falcon {
namespace {

/// Made here and by nobody else, with its path. Empty, with errno, where none could be made.
std::pair<FileDescriptor, std::string> freshBeside(const std::string& path, mode_t mode) {
  constexpr int tries = 8;  // a name that is taken is no accident: 64 bits are drawn
  std::string name;
  for (int i = 0; i < tries; ++i) {
    std::uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) continue;
    name = fmt::format("{}.{:016x}", path, drawn);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    if (FileDescriptor file = newDescriptor(::open(name.c_str(), flags, mode))) {
      keepOwnersRights(file.get());
      return {std::move(file), name};
    }
    if (errno != EEXIST) break;
  }
  return {};
}

}  // namespace

Status writeWhole(const std::string& path, std::string_view content, mode_t mode) {
  const auto [file, fresh] = freshBeside(path, mode);
  if (!file) return Error::system("{} cannot be written: {}", path, reasonOf(errno));
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
