#include "base/own_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/format.h"
#include "base/system_error.h"

namespace falcon {
namespace {

constexpr mode_t forThisUserAlone = 0700, forOthers = 0077;

}  // namespace

// Everything is asked of the descriptor: what the path names may be another folder a moment later.
Result<FileDescriptor> openOwnFolder(const std::string& path) {
  FileDescriptor folder = newDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  const int reason = errno;
  struct stat facts {};
  if (!folder && ::lstat(path.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode))
    return Error::system("{} of user {} is no folder but {}, and is not trusted: remove it", path, facts.st_uid,
                         S_ISLNK(facts.st_mode) ? "a link" : "another kind of file");
  // Another user's own folder cannot even be opened.
  const bool known = folder ? ::fstat(folder.get(), &facts) == 0 : facts.st_ino != 0;
  if (known && facts.st_uid != getuid())
    return Error::system("{} belongs to user {} instead of user {}, and is not trusted: have it removed by its owner",
                         path, facts.st_uid, getuid());
  if (!folder || !known) return Error::system("{} cannot be opened: {}", path, reasonOf(folder ? errno : reason));
  if ((facts.st_mode & forOthers) != 0 && ::fchmod(folder.get(), forThisUserAlone) != 0)
    return Error::system("{} can be written to by others, and its rights cannot be changed to 0700: {}", path,
                         reasonOf(errno));
  return folder;
}

Result<FileDescriptor> makeOwnFolder(const std::string& path) {
  if (::mkdir(path.c_str(), forThisUserAlone) == 0)
    (void)::chmod(path.c_str(), forThisUserAlone);
  else if (errno != EEXIST)
    return Error::system("{} cannot be made: {}", path, reasonOf(errno));
  return openOwnFolder(path);
}

void keepOwnersRights(int file) {
  constexpr mode_t owners = 0600;
  struct stat facts {};
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & owners) != owners)
    (void)::fchmod(file, (facts.st_mode & 07777) | owners);
}

}  // namespace falcon
