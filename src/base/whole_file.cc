#include "base/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "base/format.h"
#include "base/own_folder.h"
#include "base/owned.h"
#include "base/random.h"
#include "base/system_error.h"

namespace falcon {
namespace {

struct Draft {
  FileDescriptor file;
  std::string name;
};

/// Made here and by nobody else, beside `path`.
Result<Draft> freshBeside(const std::string& path, mode_t mode) {
  constexpr int tries = 8;  // a name that is taken is no accident: 64 bits are drawn
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  for (int i = 0; i < tries; ++i) {
    const auto drawn = randomValue<std::uint64_t>();
    if (!drawn) return Error::system("{} cannot be written: {}", path, drawn.error().message());
    Draft draft{{}, fmt::format("{}.{:016x}", path, *drawn)};
    draft.file = newDescriptor(::open(draft.name.c_str(), flags, mode));
    if (draft.file) {
      keepOwnersRights(draft.file.get());
      return draft;
    }
    if (errno != EEXIST) break;
  }
  return Error::system("{} cannot be written: {}", path, reasonOf(errno));
}

}  // namespace

Status writeWhole(const std::string& path, std::string_view content, mode_t mode) {
  const auto draft = freshBeside(path, mode);
  if (!draft) return draft.error();
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t now = ::write(draft->file.get(), content.data() + written, content.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) break;
    written += static_cast<std::size_t>(now);
  }
  if (written == content.size() && std::rename(draft->name.c_str(), path.c_str()) == 0) return {};
  const int reason = errno;
  ::unlink(draft->name.c_str());
  return Error::system("{} cannot be written: {}", path, reasonOf(reason));
}

}  // namespace falcon
